// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <millrace/dataset.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/damages.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

// Intact datasets, to be damaged.

namespace millrace::testing {

/// An intact dataset whose records all have different lengths.
struct SoundDataset {
  std::string name;
  std::uint64_t records;
  /// Bytes of the first record's image.
  std::size_t first_bytes;
  std::size_t more_bytes_each;
  /// Bytes per commit. Several commits leave pages in the file that are intact but no longer used.
  std::size_t commit_bytes;

  std::vector<std::byte> image(std::uint64_t index) const {
    Random random(7, index);
    std::vector<std::byte> bytes(first_bytes + more_bytes_each * index);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
};

inline const SoundDataset& tiny_records() {
  static const SoundDataset sample{"tiny records", 2500, 0, 0, 20'000};
  return sample;
}
inline const SoundDataset& many_leaves() {
  static const SoundDataset sample{"a record or two on each leaf, two levels of branches", 600,
                                   1100, 1, 100'000};
  return sample;
}
inline const SoundDataset& big_records() {
  static const SoundDataset sample{"records with pages of their own", 120, 2500, 41, 100'000};
  return sample;
}

inline void write(const SoundDataset& sample, const std::filesystem::path& path) {
  DatasetWriter writer(path, {.commit_bytes = sample.commit_bytes});
  for (std::uint64_t index = 0; index < sample.records; ++index) {
    const std::vector<std::byte> image = sample.image(index);
    const std::string name = std::to_string(index);
    const RecordField fields[] = {{"image", image}, {"path", std::as_bytes(std::span(name))}};
    writer.append(fields);
  }
  writer.set_classes({"cat", "dog"});
  writer.finish();
}

/// A file's bytes on the heap, so that the address sanitizer detects reads beyond them, and the
/// contents of its records.
class SoundFile {
 public:
  explicit SoundFile(const SoundDataset& sample) {
    const TemporaryFolder folder;
    write(sample, folder / "a.lmdb");
    contents_ = file_contents(folder / "a.lmdb");
    for (std::uint64_t index = 0; index < sample.records; ++index)
      images_.push_back(sample.image(index));
    pages_.emplace(contents_);
  }

  const std::string& contents() const { return contents_; }
  const FilePages& pages() const { return *pages_; }
  std::uint64_t records() const { return images_.size(); }

  void expect_sound(const Record& record, std::uint64_t index) const {
    ASSERT_EQ(record.fields().size(), 2u);
    ASSERT_TRUE(std::ranges::equal(record["image"], images_[index])) << "record " << index;
    ASSERT_EQ(record.text("path"), std::to_string(index));
  }

 private:
  std::string contents_;
  std::optional<FilePages> pages_;
  std::vector<std::vector<std::byte>> images_;
};

/// Calls all functions of a dataset and ignores the results.
inline void ask_everything(const Dataset& dataset,
                           const std::function<void(const Record&, std::uint64_t)>& look) {
  const auto reader = dataset.make_reader();
  std::vector<std::uint64_t> indices;
  for (std::uint64_t index = 0; index < dataset.size(); ++index) {
    indices.push_back(index);
    try {
      look(reader->read(index), index);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::bad_record);
      ASSERT_EQ(error.record(), index);
      ASSERT_THAT(error.what(), ::testing::HasSubstr(dataset.name()));
    }
    if (index % 16 == 0) {
      (void)dataset.key(index);
      (void)dataset.stored_record(index);
    }
  }
  dataset.prefetch(indices);
}

}  // namespace millrace::testing
