// SPDX-License-Identifier: Apache-2.0
//
// Other programs' LMDB files that were changed at random or truncated. They must give an error or a
// bad record, never a crash and never bytes from outside of the file.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/detail/page_table.h>

#include <iostream>
#include <numeric>
#include <string>

#include "loader/dataset/lmdb/written_lmdb.h"
#include "support/damages.h"

namespace millrace {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace testing;

struct Damaged {
  std::uint64_t refused = 0;
  std::uint64_t bad = 0;
  std::uint64_t good = 0;
};

void read_all(const std::filesystem::path& path, const OpenOptions& options, Damaged& damaged) {
  try {
    const auto dataset = open_dataset(path, options);
    std::vector<std::uint64_t> all(std::min<std::uint64_t>(dataset->size(), 1000));
    std::iota(all.begin(), all.end(), 0U);
    dataset->prefetch(all);
    const auto reader = dataset->make_reader();
    std::uint64_t sum = 0;
    for (const std::uint64_t index : all) {
      (void)dataset->key(index);
      try {
        const Record record = reader->read(index);
        for (const RecordField& field : record.fields())
          for (const std::byte byte : field.bytes) sum += std::to_integer<std::uint64_t>(byte);
        EXPECT_TRUE(reader->intact().is_ok());
        ++damaged.good;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_record) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(path.string()));
        ++damaged.bad;
      }
    }
    EXPECT_NE(sum, 1U);
  } catch (const Error& error) {
    EXPECT_THAT(error.code(), AnyOf(ErrorCode::corrupt, ErrorCode::incomplete)) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
    ++damaged.refused;
  }
}

TEST(DamagedLmdb, WhatAFileLosesWhileItIsOpenIsBad) {
  const WrittenLmdb written({"small"});
  MILLRACE_NEEDS_WRITTEN(written);
  for (const bool map : {true, false}) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "a.mdb";
    std::filesystem::copy_file(written / "small_images" / "data.mdb", path);
    const auto dataset = open_dataset(path, {.map = map});
    const auto reader = dataset->make_reader();
    (void)reader->read(299);
    EXPECT_TRUE(reader->intact().is_ok());
    // The new end lies within a page: the rest of that page reads as zeros without a fault.
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2 + 1000);
    std::uint64_t bad = 0;
    for (std::uint64_t index = 0; index < dataset->size(); ++index) {
      std::string reason;
      try {
        const std::string_view image = reader->read(index).text("image");
        const bool is_whole = image.starts_with("\xFF\xD8\xFF") && image.back() != '\0';
        if (reader->intact().is_ok() && image.size() < 9000) {
          EXPECT_TRUE(is_whole) << index;
        }
        reason = reader->intact().reason();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_record);
        reason = error.reason();
      }
      if (reason.empty()) continue;
      ++bad;
      EXPECT_THAT(reason, HasSubstr(path.string()));
    }
    EXPECT_GT(bad, 50U);
    EXPECT_LT(bad, 290U);
  }
}

TEST(DamagedLmdb, EndsInErrorsOrBadRecords) {
  const WrittenLmdb written({"small"});
  MILLRACE_NEEDS_WRITTEN(written);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.mdb";
  const std::pair<const char*, const char*> sets[] = {{"small_images", "images"},
                                                      {"small_datum", "caffe-datum"},
                                                      {"small_tuples", "tuples"},
                                                      {"small_ocr", "ocr"}};
  for (const auto& [name, format] : sets) {
    const std::string sound = file_contents(written / name / "data.mdb");
    const FilePages pages(sound);
    write_file(path, sound);
    (void)save_page_table(*open_dataset(path));
    const std::string table = file_contents(page_table_path(path));
    Damaged by_name, by_probe;
    const std::uint64_t count = damages(120);
    for (std::uint64_t number = 0; number < count; ++number) {
      std::string bytes = sound;
      Random random(17, number);
      damage(bytes, pages, random);
      if (number % 8 == 0) bytes.resize(random.below(bytes.size()));
      if (number % 16 == 8) bytes = sound.substr(0, bytes.size());
      write_file(path, bytes);
      // With a stored table damage is found by reads alone.
      std::filesystem::remove(page_table_path(path));
      if (number % 2 == 0) write_file(page_table_path(path), table);
      // Without a probe, whose findings could prevent the rest from being read.
      read_all(path, {.map = number % 4 != 1, .format = format}, by_name);
      read_all(path, {.map = number % 4 != 2}, by_probe);
      ASSERT_FALSE(HasFailure()) << name << ", damage number " << number;
    }
    std::cout << name << ": " << by_name.refused << " of " << count << " refused when opened, "
              << by_name.bad << " bad records and " << by_name.good << " good ones in the others\n";
    EXPECT_GT(by_name.refused, count / 20);
    EXPECT_GT(by_name.bad, 0U);
    EXPECT_LT(by_name.refused, count);
    EXPECT_GE(by_probe.refused, by_name.refused / 2);
  }
}

}  // namespace
}  // namespace millrace
