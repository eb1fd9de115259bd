// SPDX-License-Identifier: Apache-2.0
//
// Entries by their number, compared with a cursor of liblmdb.
#include "dataset/lmdb/leaf_table.h"

#include <gmock/gmock.h>
#include <lmdb.h>
#include <millrace/random.h>

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataset/lmdb/entries.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;

using KeyValues = std::vector<std::pair<std::string, std::string>>;

std::string random_text(Random& random, std::size_t length) {
  std::string text(length, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string random_key(Random& random, unsigned flags) {
  if ((flags & MDB_INTEGERKEY) == 0)
    return random_text(random, 1 + random.below(random.below(8) == 0 ? 511 : 12));
  const std::uint64_t number = random.below(100'000) << random.below(20);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

/// Writes and deletes at random in several transactions. Returns the entries that a cursor finds
/// then.
KeyValues write_random(const std::filesystem::path& path, unsigned flags, std::size_t entries,
                       Random random) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi handle = 0;
  const auto check = [](int result) {
    if (result != 0) throw std::runtime_error(mdb_strerror(result));
  };
  check(mdb_env_create(&environment));
  check(mdb_env_set_maxdbs(environment, 4));
  check(mdb_env_set_mapsize(environment, std::size_t{1} << 30));
  check(mdb_env_open(environment, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0644));
  std::vector<std::string> keys;
  for (int round = 0; round < 4; ++round) {
    check(mdb_txn_begin(environment, nullptr, 0, &transaction));
    check(mdb_dbi_open(transaction, "any", MDB_CREATE | flags, &handle));
    for (std::size_t n = 0; n < entries / 4; ++n) {
      std::string key = random_key(random, flags);
      std::string value = random_text(random, random.below(random.below(40) == 0 ? 9000 : 30));
      MDB_val stored_key{key.size(), key.data()};
      MDB_val stored_value{value.size(), value.data()};
      check(mdb_put(transaction, handle, &stored_key, &stored_value, 0));
      keys.push_back(std::move(key));
    }
    // Deletes mostly from one end, so that pages become free.
    for (std::size_t n = 0; n < entries / 12; ++n) {
      std::string& key =
          keys[random.below(keys.size() / (round % 2 == 0 ? 1 : 3) + 1) % keys.size()];
      MDB_val stored_key{key.size(), key.data()};
      (void)mdb_del(transaction, handle, &stored_key, nullptr);
    }
    check(mdb_txn_commit(transaction));
  }
  KeyValues all;
  MDB_cursor* cursor = nullptr;
  check(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction));
  check(mdb_cursor_open(transaction, handle, &cursor));
  MDB_val key{}, value{};
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
    all.emplace_back(text_of(key), text_of(value));
  mdb_cursor_close(cursor);
  mdb_txn_abort(transaction);
  mdb_env_close(environment);
  return all;
}

void expect_same(const std::filesystem::path& path, const KeyValues& expected, bool map) {
  const auto file = LmdbFile::open(path, map);
  const LmdbTree tree = *LmdbCursor(*file).with(
      [&](const LmdbPages& pages) { return pages.find_tree(file->meta().main, "any"); });
  const auto table = std::make_shared<const LeafTable>(*file, tree);
  ASSERT_EQ(table->leaves().size(), tree.leaves);
  ASSERT_TRUE(table->is_sound(file->pages()));
  const Entries entries(file, tree, table);
  ASSERT_EQ(entries.size(), expected.size());
  EntryCursor cursor(entries);
  Random random(7, 1);
  for (std::uint64_t n = 0; n < expected.size(); ++n) {
    const std::uint64_t any = n % 2 == 0 ? n : random.below(expected.size());
    ASSERT_EQ(cursor.key(any), expected[any].first);
    const std::span<const std::byte> value = cursor.value(any);
    ASSERT_EQ(std::string(reinterpret_cast<const char*>(value.data()), value.size()),
              expected[any].second);
    ASSERT_EQ(cursor.locate(any).bytes, value.size());
    if (n % 16 == 0) {
      ASSERT_EQ(cursor.first_not_before(expected[any].first), any);
      ASSERT_EQ(cursor.first_not_before(expected[any].first, random.below(any + 1)), any);
    }
  }
}

TEST(LeafTable, FindsEachEntryWhereALmdbCursorDoes) {
  const TemporaryFolder folder;
  std::uint64_t number = 0, leaves = 0;
  for (const unsigned flags : {0U, unsigned{MDB_INTEGERKEY}, unsigned{MDB_REVERSEKEY}})
    for (const std::size_t entries : {0U, 1U, 4U, 12U, 300U, 2000U, 10'000U}) {
      SCOPED_TRACE(std::to_string(flags) + ", " + std::to_string(entries) + " entries");
      const std::filesystem::path path = folder / std::to_string(number);
      const KeyValues expected = write_random(path, flags, entries, Random(number++, 0));
      leaves += expected.size();
      expect_same(path, expected, true);
      if (entries <= 2000) expect_same(path, expected, false);
      if (HasFatalFailure()) return;
    }
  EXPECT_GT(leaves, 20'000U);
}

/// Returns a file with one leaf page of entries "a" to "d" and any page size.
std::string small_file(std::uint32_t page_bytes, std::uint16_t key_bytes = 1) {
  std::string file(3 * std::size_t{page_bytes}, '\0');
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(&file[at], &value, sizeof value);
  };
  for (std::size_t page = 0; page < 2; ++page) {
    const std::size_t at = page * page_bytes;
    put(at, std::uint64_t{page});
    put(at + 10, std::uint16_t{8});
    put(at + 16, std::uint32_t{0xBEEFC0DE});
    put(at + 20, std::uint32_t{1});
    put(at + 40, page_bytes);  // stored with the tree of free pages
    put(at + 80, LmdbTree::no_page);
    put(at + 94, std::uint16_t{1});  // depth
    put(at + 104, std::uint64_t{1});
    put(at + 120, std::uint64_t{4});
    put(at + 128, std::uint64_t{2});  // root
    put(at + 136, std::uint64_t{2});
    put(at + 144, std::uint64_t{page + 1});
  }
  const std::size_t leaf = 2 * std::size_t{page_bytes};
  put(leaf, std::uint64_t{2});
  put(leaf + 10, std::uint16_t{2});
  put(leaf + 12, std::uint16_t{16 + 4 * 2});
  std::size_t end = page_bytes;
  for (std::size_t n = 0; n < 4; ++n) {
    end -= (8U + key_bytes + 1U + 1U) / 2 * 2;
    put(leaf + 16 + 2 * n, static_cast<std::uint16_t>(end));
    put(leaf + end, std::uint32_t{1});
    put(leaf + end + 6, key_bytes);
    for (std::size_t at = 0; at < key_bytes; ++at)
      file[leaf + end + 8 + at] = static_cast<char>('a' + n);
    file[leaf + end + 8 + key_bytes] = static_cast<char>('A' + n);
  }
  put(leaf + 14, static_cast<std::uint16_t>(end));
  return file;
}

TEST(LeafTable, PagesHaveTheSizeThatTheMetaPageSays) {
  const TemporaryFolder folder;
  for (const std::uint32_t page_bytes : {512U, 8192U, 32768U}) {
    const std::filesystem::path path = folder / std::to_string(page_bytes);
    write_file(path, small_file(page_bytes));
    const auto file = LmdbFile::open(path, true);
    const LmdbTree& main = file->meta().main;
    const Entries entries(file, main, std::make_shared<const LeafTable>(*file, main));
    EntryCursor cursor(entries);
    ASSERT_EQ(entries.size(), 4U);
    EXPECT_EQ(cursor.key(2), "c");
    EXPECT_EQ(cursor.value(3)[0], std::byte{'D'});
  }
}

TEST(LeafTable, KeysBeyondLmdbsLimitAreAnError) {
  const TemporaryFolder folder;
  for (const std::uint16_t key_bytes : {std::uint16_t{511}, std::uint16_t{512}}) {
    const std::filesystem::path path = folder / std::to_string(key_bytes);
    write_file(path, small_file(8192, key_bytes));
    const auto file = LmdbFile::open(path, true);
    const auto make = [&] { return LeafTable(*file, file->meta().main).entries(); };
    if (key_bytes == 511) {
      EXPECT_EQ(make(), 4U);
      continue;
    }
    try {
      (void)make();
      ADD_FAILURE();
    } catch (const LmdbDamage& damage) {
      EXPECT_THAT(damage.what(), HasSubstr("page 2 has a key of more than the 511 bytes"));
    }
  }
}

TEST(LeafTable, StoredLeavesThatCannotBeAreNotTaken) {
  using Leaves = std::vector<LeafTable::Leaf>;
  const Leaves sound = {{2, 0, 0}, {9, 5, 0}, {4, 6, 0}};
  EXPECT_TRUE(LeafTable(sound, 20).is_sound(10));
  EXPECT_FALSE(LeafTable(sound, 20).is_sound(9)) << "a page behind the end";
  EXPECT_FALSE(LeafTable(sound, 6).is_sound(10)) << "a last leaf without entries";
  EXPECT_FALSE(LeafTable(sound, 1'000'000).is_sound(10)) << "a leaf with too many entries";
  EXPECT_FALSE(LeafTable(Leaves{{2, 1, 0}}, 20).is_sound(10));
  EXPECT_FALSE(LeafTable(Leaves{{2, 0, 0}, {3, 0, 0}}, 20).is_sound(10));
  EXPECT_FALSE(LeafTable(Leaves{{2, 0, 0}, {3, 0, 1U << 16}}, 20).is_sound(10));
  EXPECT_FALSE(LeafTable({}, 1).is_sound(10));
}

}  // namespace
}  // namespace millrace
