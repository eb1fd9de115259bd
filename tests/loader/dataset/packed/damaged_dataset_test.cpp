// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dataset/packed/dataset_file.h"
#include "support/damages.h"
#include "support/sound_file.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

// Datasets whose files were changed at random. Each record must be the written one or throw an
// `Error`. The number of a change determines it, so a failure can be repeated.

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;

/// Result of reading a damaged file.
struct Outcome {
  bool opened = false;
  std::uint64_t bad = 0;
};

/// Reads all records of a file in memory, as `DatasetFile` and `Dataset` do.
Outcome read_all(std::span<const std::byte> file, const SoundFile& sound) {
  Outcome outcome;
  try {
    const auto meta_at = [&](std::size_t at) {
      return parse_lmdb_meta(file.subspan(at).first<LmdbMeta::bytes>());
    };
    const std::optional<LmdbMeta> first = meta_at(0);
    const std::optional<LmdbMeta> second = first ? meta_at(first->page_bytes) : std::nullopt;
    if (!second || first->page_bytes != second->page_bytes) return outcome;
    const LmdbMeta& meta = second->transaction > first->transaction ? *second : *first;
    if (meta.last_page >= file.size() / meta.page_bytes) return outcome;
    const LmdbPages pages(file.first((meta.last_page + 1) * meta.page_bytes), meta.page_bytes);
    const DatasetRoot root = read_dataset_root(pages, meta.main, "file");
    if (!root.description.complete) return outcome;
    EXPECT_EQ(root.description.records, sound.records());
    EXPECT_EQ(root.description.classes, (std::vector<std::string>{"cat", "dog"}));
    outcome.opened = true;

    LmdbLeafRange place;
    std::vector<RecordField> fields;
    for (std::uint64_t index = 0; index < root.description.records; ++index) {
      try {
        const std::span<const std::byte> value = pages.find_record(root.records, index, place);
        const std::byte* end = file.data() + file.size();
        EXPECT_TRUE(value.data() >= file.data() && value.data() <= end &&
                    value.size() <= static_cast<std::size_t>(end - value.data()))
            << "record " << index << " lies outside of the file";
        if (::testing::Test::HasFailure()) return outcome;
        Status status = parse_record(value, root.description.fields, fields);
        if (status.is_ok()) status = check_checksum(value);
        if (status.is_ok())
          sound.expect_sound(Record(index, fields), index);
        else
          ++outcome.bad;
      } catch (const LmdbDamage&) {
        ++outcome.bad;
      }
    }
  } catch (const Error& error) {
    EXPECT_THAT(error.code(), ::testing::AnyOf(ErrorCode::corrupt, ErrorCode::incomplete))
        << error.what();
  }
  return outcome;
}

void damage_in_memory(const SoundDataset& sample, std::uint64_t count) {
  const SoundFile sound(sample);
  ASSERT_EQ(read_all(std::as_bytes(std::span(sound.contents())), sound).bad, 0u);
  std::uint64_t refused = 0, with_bad_records = 0;
  // Allocated with the file's exact length: a string may have spare capacity behind it.
  const std::size_t size = sound.contents().size();
  const auto bytes = std::make_unique<char[]>(size);
  for (std::uint64_t number = 0; number < count; ++number) {
    std::memcpy(bytes.get(), sound.contents().data(), size);
    Random random(2024, number);
    damage({bytes.get(), size}, sound.pages(), random);
    const Outcome outcome =
        read_all(std::as_bytes(std::span<const char>(bytes.get(), size)), sound);
    ASSERT_FALSE(::testing::Test::HasFailure()) << sample.name << ", damage number " << number;
    refused += outcome.opened ? 0 : 1;
    with_bad_records += outcome.bad > 0 ? 1 : 0;
  }
  std::cout << sample.name << ": " << count << " damages, " << refused << " refused when opened, "
            << with_bad_records << " with bad records, " << count - refused - with_bad_records
            << " in parts that hold nothing\n";
  // Otherwise the damages hit nothing that matters.
  EXPECT_GT(refused, 0u);
  EXPECT_GT(with_bad_records, count / 10);
}

TEST(DamagedDataset, TinyRecordsAreSoundOrRefused) {
  damage_in_memory(tiny_records(), damages(600));
}
TEST(DamagedDataset, RecordsOnManyLeavesAreSoundOrRefused) {
  damage_in_memory(many_leaves(), damages(600));
}
TEST(DamagedDataset, RecordsWithPagesOfTheirOwnAreSoundOrRefused) {
  damage_in_memory(big_records(), damages(600));
}

/// The same with mapped files, some of which are truncated too.
void damage_files(const SoundDataset& sample, std::uint64_t count) {
  const SoundFile sound(sample);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  std::uint64_t refused = 0;
  for (std::uint64_t number = 0; number < count; ++number) {
    std::string bytes = sound.contents();
    Random random(77, number);
    damage(bytes, sound.pages(), random);
    if (number % 8 == 0) bytes.resize(random.below(bytes.size()));
    if (number % 16 == 8) bytes = sound.contents().substr(0, bytes.size());
    write_file(path, bytes);
    try {
      const auto dataset = open_dataset(path);
      ask_everything(*dataset, [&](const Record& record, std::uint64_t index) {
        sound.expect_sound(record, index);
      });
      // Without checksums a record may contain anything, but only bytes of the file.
      const Mapping map = mappings_of(path).at(0);
      ask_everything(*open_dataset(path, {.verify_checksums = false}),
                     [&](const Record& record, std::uint64_t) {
                       for (const RecordField& field : record.fields()) {
                         const auto begin = reinterpret_cast<std::uintptr_t>(field.bytes.data());
                         ASSERT_TRUE(begin >= map.begin && begin + field.bytes.size() <= map.end);
                       }
                     });
    } catch (const Error& error) {
      ASSERT_THAT(error.code(), ::testing::AnyOf(ErrorCode::corrupt, ErrorCode::incomplete));
      ASSERT_THAT(error.what(), HasSubstr(path.string()));
      ++refused;
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << sample.name << ", damage number " << number;
  }
  EXPECT_GE(refused, count / 8);
}

TEST(DamagedDataset, FilesOfTinyRecordsEndInErrors) { damage_files(tiny_records(), damages(64)); }
TEST(DamagedDataset, FilesOfManyLeavesEndInErrors) { damage_files(many_leaves(), damages(64)); }
TEST(DamagedDataset, FilesOfBigRecordsEndInErrors) { damage_files(big_records(), damages(64)); }

}  // namespace
}  // namespace millrace
