// SPDX-License-Identifier: Apache-2.0
//
// Damaged bytes of a packed file: records, pages, meta pages, and truncated files.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace testing;

// LMDB takes the machine's.
const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

TEST(Dataset, AnLmdbFileOfAnotherKindIsNamed) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 3);
  const std::string sound = file_contents(folder / "a.lmdb");
  const std::string path = (folder / "b.lmdb").string();
  const auto expect_refused = [&](const std::string& file, const std::string& found) {
    write_file(path, file);
    const Error error = thrown_by([&] { (void)open_dataset(path); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_EQ(error.what(),
              path + ": LMDB file of " + found +
                  ", expected data version 1 (LMDB 0.9) of a 64-bit program; convert it: `mdb_dump "
                  "-a -n " +
                  path +
                  " | mdb_load -n NEW`, mdb_dump of the LMDB that wrote it, mdb_load of "
                  "LMDB 0.9 for 64 bits");
  };
  const auto of_version = [&](std::string file, std::size_t header_bytes, char version) {
    file[header_bytes + 4] = version;
    return file;
  };
  // A page header has 16 bytes; in LMDB 1.0 it has a transaction number, too.
  const std::string newer = sound.substr(0, 8) + std::string(8, '\1') + sound.substr(8);
  expect_refused(of_version(newer, 24, 2), "data version 2 (LMDB 1.0)");
  expect_refused(of_version(newer, 24, 7), "data version 7");
  expect_refused(of_version(sound, 16, 9), "data version 9");
  expect_refused(of_version(sound, 16, 2), "data version 2 (LMDB 1.0) of a 32-bit program");
  // In such a program a page number has 4 bytes.
  expect_refused(sound.substr(4), "data version 1 of a 32-bit program");
  std::string big_endian = sound;
  for (const std::size_t at : {16UL, 20UL}) std::reverse(&big_endian[at], &big_endian[at] + 4);
  expect_refused(big_endian, "data version 1 of a big-endian machine");
}

TEST(Dataset, OneFlippedBitSpoilsOneRecord) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 30);
  std::string file = file_contents(folder / "a.lmdb");
  const std::vector<std::byte> image = stored_bytes(11);
  ASSERT_GT(image.size(), 100u);
  const std::size_t at =
      file.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  ASSERT_NE(at, std::string::npos);
  file[at + image.size() / 2] ^= 0x10;
  write_file(folder / "a.lmdb", file);

  const auto dataset = open_dataset(folder / "a.lmdb");
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < 30; ++index)
    if (index != 11) expect_record(reader->read(index), index);
  const Error error = thrown_by([&] { (void)reader->read(11); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_EQ(error.record(), 11u);
  EXPECT_THAT(error.what(), HasSubstr("record 11 (" + stored_path(11) + ")"));
  EXPECT_THAT(error.what(), HasSubstr("checksum"));
  EXPECT_EQ(error.reason(), "its bytes do not match its checksum: the file is damaged");
  expect_record(reader->read(12), 12);

  const auto trusting = open_dataset(folder / "a.lmdb", {.verify_checksums = false});
  EXPECT_EQ(trusting->make_reader()->read(11)["image"].size(), image.size());
}

TEST(Dataset, ADamagedRecordHeaderIsABadRecord) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 12);
  const std::string sound = file_contents(folder / "a.lmdb");
  const std::vector<std::byte> image = stored_bytes(11);
  const std::size_t image_at =
      sound.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  ASSERT_NE(image_at, std::string::npos);
  // Checksum, number of fields and the three lengths lie before the image.
  for (std::size_t back = 1; back <= 24; ++back) {
    std::string file = sound;
    file[image_at - back] ^= 0x7f;
    const std::filesystem::path path = folder / ("damaged" + std::to_string(back));
    write_file(path, file);
    const auto reader = open_dataset(path, {.verify_checksums = back > 16})->make_reader();
    EXPECT_EQ(thrown_by([&] { (void)reader->read(11); }).code(), ErrorCode::bad_record) << back;
    expect_record(reader->read(10), 10);
  }
}

/// Returns the offsets of the pages with these flags of LMDB (1 = branch, 2 = leaf), without the
/// two meta pages.
std::vector<std::size_t> pages_with_flags(const std::string& file, std::uint16_t flags) {
  std::vector<std::size_t> pages;
  for (std::size_t page = 2 * page_bytes; page < file.size(); page += page_bytes) {
    std::uint64_t number = 0;
    std::uint16_t found = 0;
    std::memcpy(&number, &file[page], sizeof number);
    std::memcpy(&found, &file[page + 10], sizeof found);
    // Other matches lie within a record.
    if (number == page / page_bytes && found == flags) pages.push_back(page);
  }
  return pages;
}

// A branch page that claims to have one key fails an assertion of LMDB, which aborts the process by
// default.
TEST(Dataset, ADamagedBranchPageDoesNotEndTheProcess) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 2000);
  std::string file = file_contents(folder / "a.lmdb");
  const std::vector<std::size_t> pages = pages_with_flags(file, 1);
  ASSERT_FALSE(pages.empty());
  for (const std::size_t page : pages) {
    const std::uint16_t end_of_keys = 16 + 2;
    std::memcpy(&file[page + 12], &end_of_keys, sizeof end_of_keys);
  }
  write_file(folder / "a.lmdb", file);
  const auto dataset = open_dataset(folder / "a.lmdb");
  const auto reader = dataset->make_reader();
  const Error error = thrown_by([&] { (void)reader->read(1500); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_THAT(error.reason(), StartsWith("the file's pages that lead to it are damaged: page "));
  EXPECT_EQ(dataset->key(1500), "record 1500");
  dataset->prefetch(std::vector<std::uint64_t>{1500});
}

TEST(Dataset, ADamagedLeafPageSpoilsOnlyItsRecords) {
  const TemporaryFolder folder;
  constexpr std::uint64_t records = 300;
  write_dataset(folder / "a.lmdb", records);
  const std::string sound = file_contents(folder / "a.lmdb");
  std::uint64_t spoiled = 0;
  for (const std::size_t page : pages_with_flags(sound, 2)) {
    std::string file = sound;
    file[page + 10] = 0;
    const std::filesystem::path path = folder / ("page" + std::to_string(page));
    write_file(path, file);
    try {
      const auto dataset = open_dataset(path);
      const auto reader = dataset->make_reader();
      for (std::uint64_t index = 0; index < records; ++index) {
        try {
          (void)reader->read(index);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::bad_record);
          ++spoiled;
        }
      }
    } catch (const Error& error) {
      // The page led to the databases.
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
  }
  EXPECT_EQ(spoiled, records) << "each record lies on one leaf page";
}

TEST(Dataset, AFileCutShortAnywhereIsRefused) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 30);
  const std::string whole = file_contents(folder / "a.lmdb");
  std::vector<std::size_t> lengths;
  for (std::size_t length = 1; length < whole.size(); length += 1009) lengths.push_back(length);
  for (std::size_t page = page_bytes; page < whole.size(); page += page_bytes)
    lengths.insert(lengths.end(), {page - 1, page, page + 1});
  lengths.push_back(whole.size() - 1);
  for (const std::size_t length : lengths) {
    const std::filesystem::path path = folder / "short.lmdb";
    std::filesystem::remove(path);
    write_file(path, whole.substr(0, length));
    const Error error = thrown_by([&] { (void)open_dataset(path); });
    ASSERT_EQ(error.code(), ErrorCode::corrupt) << length;
    ASSERT_THAT(error.what(), HasSubstr(path.string()));
    if (length > page_bytes + 200) {
      ASSERT_THAT(
          error.what(),
          HasSubstr("is " + std::to_string(length) + " bytes long but its last page ends at " +
                    std::to_string(whole.size()) + ": the file was cut short"));
    }
  }
}

TEST(Dataset, MetaPagesThatLieAreRefused) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 5);
  const std::string sound = file_contents(folder / "a.lmdb");
  // The offsets of magic, version, page size and last page, changed in both meta pages.
  for (const std::size_t offset : std::to_array<std::size_t>({16, 20, 40, 41, 42, 136, 139, 143})) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string file = sound;
      if (file[offset] == value) continue;
      file[offset] = file[page_bytes + offset] = value;
      const std::filesystem::path path = folder / "lying.lmdb";
      std::filesystem::remove(path);
      write_file(path, file);
      // A last page that is too small cuts off pages; the error then comes from the records on
      // them.
      try {
        const auto dataset = open_dataset(path);
        const auto reader = dataset->make_reader();
        for (std::uint64_t index = 0; index < dataset->size(); ++index)
          expect_record(reader->read(index), index);
        ADD_FAILURE() << "offset " << offset << ", value " << int{value};
      } catch (const Error& error) {
        EXPECT_THAT(error.code(), AnyOf(Eq(ErrorCode::corrupt), Eq(ErrorCode::bad_record),
                                        Eq(ErrorCode::incomplete)));
      }
    }
  }
}

}  // namespace
}  // namespace millrace
