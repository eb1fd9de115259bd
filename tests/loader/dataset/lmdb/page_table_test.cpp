// SPDX-License-Identifier: Apache-2.0
//
// The table of pages that is stored beside another program's LMDB.
#include <gmock/gmock.h>
#include <lmdb.h>
#include <millrace/dataset.h>
#include <millrace/detail/page_table.h>

#include <string>

#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

/// Adds entries to a file; values begin as JPEG images.
void put_images(const std::filesystem::path& path, int first, int count) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi handle = 0;
  ASSERT_EQ(mdb_env_create(&environment), 0);
  ASSERT_EQ(mdb_env_set_mapsize(environment, std::size_t{64} << 20), 0);
  ASSERT_EQ(mdb_env_open(environment, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0644), 0);
  ASSERT_EQ(mdb_txn_begin(environment, nullptr, 0, &transaction), 0);
  ASSERT_EQ(mdb_dbi_open(transaction, nullptr, 0, &handle), 0);
  for (int n = first; n < first + count; ++n) {
    std::string key = std::to_string(100'000 + n);
    std::string value = "\xFF\xD8\xFF\xE0 picture " + std::string(100, 'x') + key;
    MDB_val stored_key{key.size(), key.data()};
    MDB_val stored_value{value.size(), value.data()};
    ASSERT_EQ(mdb_put(transaction, handle, &stored_key, &stored_value, 0), 0);
  }
  ASSERT_EQ(mdb_txn_commit(transaction), 0);
  mdb_env_close(environment);
}

void expect_whole(const Dataset& dataset, std::uint64_t records) {
  ASSERT_EQ(dataset.size(), records);
  const auto reader = dataset.make_reader();
  for (std::uint64_t n = 0; n < records; ++n) {
    const std::string key = std::to_string(100'000 + n);
    ASSERT_EQ(dataset.key(n), key);
    ASSERT_TRUE(reader->read(n).text("image").ends_with(key));
  }
}

TEST(PageTable, IsUsedForItsStateOfTheFileAlone) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.mdb";
  const std::filesystem::path table = page_table_path(path);
  put_images(path, 0, 2000);
  EXPECT_TRUE(save_page_table(*open_dataset(path)));
  EXPECT_EQ(table, folder / "a.mdb.pages");
  // 12 bytes a leaf, and a leaf is one page.
  EXPECT_LT(std::filesystem::file_size(table), 100 + std::filesystem::file_size(path) / 4096 * 12);
  // A branch page that is damaged afterwards is not read.
  std::string bytes = file_contents(path);
  for (std::size_t page = 2 * page_bytes; page < bytes.size(); page += page_bytes)
    if (bytes[page + 10] == 1) bytes[page + 10] = 3;
  const auto with_damage = folder / "damaged.mdb";
  write_file(with_damage, bytes);
  EXPECT_EQ(thrown_by([&] { (void)open_dataset(with_damage, {.format = "images"}); }).code(),
            ErrorCode::corrupt);
  {
    const auto dataset = open_dataset(path);
    EXPECT_THAT(dataset->facts().warnings, ElementsAre());
    expect_whole(*dataset, 2000);
  }
  put_images(path, 2000, 1);
  const auto changed = open_dataset(path);
  EXPECT_THAT(changed->facts().warnings,
              ElementsAre(HasSubstr(table.string() +
                                    " belongs to another state of the file; it is not used.")));
  expect_whole(*changed, 2001);
  EXPECT_TRUE(save_page_table(*changed));
  EXPECT_THAT(open_dataset(path)->facts().warnings, ElementsAre());
}

TEST(PageTable, DamageIsAWarning) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.mdb";
  const std::filesystem::path table = page_table_path(path);
  put_images(path, 0, 300);
  EXPECT_TRUE(save_page_table(*open_dataset(path)));
  const std::string sound = file_contents(table);
  const auto expect_unused = [&](const std::string& contents, const char* why) {
    write_file(table, contents);
    const auto dataset = open_dataset(path);
    ASSERT_THAT(dataset->facts().warnings, ElementsAre(HasSubstr(why)));
    expect_whole(*dataset, 300);
  };
  for (std::size_t at = 0; at < sound.size(); at += 5) {
    std::string contents = sound;
    contents[at] ^= 0x20;
    expect_unused(contents, "damaged; it is not used");
  }
  expect_unused(sound.substr(0, sound.size() - 1), "damaged");
  expect_unused(sound.substr(0, 20), "cut short");
  expect_unused("", "cut short");
  expect_unused(std::string(100'000, 'x'), "is not a table of this file's pages");
}

TEST(PageTable, OnlyItsOwnKindIsReplaced) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.mdb";
  put_images(path, 0, 10);
  write_file(page_table_path(path), "a text");
  const Error error = thrown_by([&] { (void)save_page_table(*open_dataset(path)); });
  EXPECT_EQ(error.code(), ErrorCode::already_exists);
  EXPECT_EQ(file_contents(page_table_path(path)), "a text");
  write_dataset(folder / "b.lmdb", 3);
  EXPECT_FALSE(save_page_table(*open_dataset(folder / "b.lmdb")));
}

}  // namespace
}  // namespace millrace
