// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "dataset/packed/dataset_file.h"
#include "support/sound_file.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

// Datasets with one damaged part each.

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;

TEST(DamagedPart, AnyBitOfARecordSpoilsJustThatRecord) {
  const SoundFile sound(big_records());
  const TemporaryFolder folder;
  Random random(5, 0);
  for (int flip = 0; flip < 40; ++flip) {
    const std::uint64_t spoiled = random.below(sound.records());
    const std::vector<std::byte> image = big_records().image(spoiled);
    std::string bytes = sound.contents();
    const std::size_t at =
        bytes.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
    ASSERT_NE(at, std::string::npos);
    // Checksum, number of fields and their lengths lie before it.
    constexpr std::size_t header = 8 + 4 + 2 * 4;
    bytes[at - header + random.below(header + image.size())] ^=
        static_cast<char>(1 << random.below(8));
    write_file(folder / "a.lmdb", bytes);
    const auto dataset = open_dataset(folder / "a.lmdb");
    std::vector<std::uint64_t> bad;
    const auto reader = dataset->make_reader();
    for (std::uint64_t index = 0; index < dataset->size(); ++index) {
      try {
        sound.expect_sound(reader->read(index), index);
      } catch (const Error& error) {
        bad.push_back(index);
      }
    }
    ASSERT_EQ(bad, std::vector{spoiled});
  }
}

TEST(DamagedPart, AZeroByteInARecordsNameHidesNothing) {
  const SoundFile sound(big_records());
  const TemporaryFolder folder;
  std::string bytes = sound.contents();
  const std::vector<std::byte> image = big_records().image(77);
  const std::size_t at =
      bytes.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  ASSERT_NE(at, std::string::npos);
  bytes[at + image.size()] = '\0';  // of its path, "77"
  write_file(folder / "a.lmdb", bytes);
  const auto dataset = open_dataset(folder / "a.lmdb");
  const auto reader = dataset->make_reader();
  const Error error = thrown_by([&] { (void)reader->read(77); });
  EXPECT_THAT(error.what(), HasSubstr("record 77 (?7) of " + dataset->name() +
                                      " cannot be read: its bytes do not match"));
}

TEST(DamagedPart, ATreeThatPromisesMoreThanItsLeafIsRefused) {
  const SoundFile sound(tiny_records());
  const auto file = std::as_bytes(std::span(sound.contents()));
  const LmdbPages pages(file, static_cast<std::uint32_t>(sound.pages().page_bytes()));
  constexpr std::uint64_t many = std::uint64_t{1} << 40;
  for (const std::size_t page : sound.pages().headers())
    for (const std::uint64_t index : {std::uint64_t{300}, many / 2, many - 1, many}) {
      LmdbLeafRange place;
      const LmdbTree tree{
          .flags = 8, .depth = 1, .entries = many, .root = page / sound.pages().page_bytes()};
      EXPECT_THROW((void)pages.find_record(tree, index, place), LmdbDamage) << page << " " << index;
      EXPECT_THROW((void)pages.find_record({.depth = 9999, .entries = many, .root = tree.root},
                                           index, place),
                   LmdbDamage);
    }
}

// A wrong page header must be refused, even if the records could still be found.
TEST(DamagedPart, EveryPartOfAHeaderIsCompared) {
  SoundDataset sample = big_records();
  sample.records = 30;
  sample.commit_bytes = std::size_t{1} << 30;
  const SoundFile sound(sample);
  const TemporaryFolder folder;
  const auto is_found = [&](std::size_t page, std::size_t at) {
    std::string bytes = sound.contents();
    bytes[page + at] ^= 0x40;
    write_file(folder / "a.lmdb", bytes);
    try {
      std::uint64_t good = 0;
      ask_everything(*open_dataset(folder / "a.lmdb", {.verify_checksums = false}),
                     [&](const Record&, std::uint64_t) { ++good; });
      return good < sound.records();
    } catch (const Error&) {
      return true;
    }
  };
  std::map<std::uint16_t, std::uint64_t> pages, missed;
  for (const std::size_t page : sound.pages().headers()) {
    std::uint16_t flags = 0;
    std::memcpy(&flags, &sound.contents()[page + 10], sizeof flags);
    if (flags != 2 && flags != 4) continue;
    ++pages[flags];
    // Number, flags, bounds or number of pages; 8 and 9 have no meaning.
    for (const std::size_t at : std::to_array<std::size_t>({0, 7, 10, 11, 13, 15})) {
      // A value may have more pages than it needs.
      if (flags == 4 && at > 11) continue;
      if (!is_found(page, at)) {
        ++missed[flags];
        break;
      }
    }
  }
  EXPECT_EQ(pages[4], sound.records());
  EXPECT_EQ(missed[4], 0u);
  EXPECT_GE(pages[2], 3u);
  // Pages of the previous commit are free.
  EXPECT_LE(missed[2], 3u);
}

// If a leaf's first key were changed to the next one, record n + 1 would exist twice, and its wrong
// copy would be returned.
TEST(DamagedPart, AChangedKeyNeverLeadsToAnotherRecord) {
  const SoundFile sound(tiny_records());
  const TemporaryFolder folder;
  for (std::uint64_t index = 1; index < sound.records(); index += 97) {
    std::string bytes = sound.contents();
    // Finds each node that has this key and the length of a small value. Older copies of the page
    // have it, too.
    std::string node(8, '\0');
    node[6] = 8;
    std::uint64_t changed = 0;
    for (std::size_t at = 2 * sound.pages().page_bytes(); at + 16 < bytes.size(); at += 2) {
      std::uint64_t key = 0;
      std::memcpy(&key, &bytes[at + 8], sizeof key);
      if (key != index || bytes.compare(at + 4, 4, node, 4, 4) != 0) continue;
      ++key;
      std::memcpy(&bytes[at + 8], &key, sizeof key);
      ++changed;
    }
    ASSERT_GT(changed, 0u);
    write_file(folder / "a.lmdb", bytes);
    const auto dataset = open_dataset(folder / "a.lmdb");
    ask_everything(*dataset, [&](const Record& record, std::uint64_t read) {
      ASSERT_NE(read, index);
      sound.expect_sound(record, read);
    });
  }
}

TEST(DamagedPart, OpeningLooksAtNoneOfTheRecordsPages) {
  const SoundFile sound(many_leaves());
  const TemporaryFolder folder;
  std::string bytes = sound.contents();
  for (const std::size_t page : sound.pages().headers()) {
    std::uint16_t flags = 0;
    std::memcpy(&flags, &bytes[page + 10], sizeof flags);
    // Leaves with the key of a record; those of the databases have names.
    if (flags == 2 && bytes.find("records", page) >= page + sound.pages().page_bytes() &&
        bytes.find("description", page) >= page + sound.pages().page_bytes())
      bytes[page + 10] = 0;
  }
  write_file(folder / "a.lmdb", bytes);
  const auto dataset = open_dataset(folder / "a.lmdb");
  std::uint64_t sound_records = 0;
  ask_everything(*dataset, [&](const Record&, std::uint64_t) { ++sound_records; });
  EXPECT_EQ(sound_records, 0u);
}

TEST(DamagedPart, ADescriptionIsOnlyTakenAsItWasWritten) {
  const SoundFile sound(big_records());
  const TemporaryFolder folder;
  std::string bytes = sound.contents();
  std::size_t changed = 0;
  for (std::size_t at = bytes.find("\"cat\""); at != std::string::npos;
       at = bytes.find("\"cat\"", at + 1), ++changed)
    bytes[at + 1] = 'r';
  ASSERT_GT(changed, 0u);
  write_file(folder / "a.lmdb", bytes);
  const Error error = thrown_by([&] { (void)open_dataset(folder / "a.lmdb"); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("its description does not match its checksum"));
  EXPECT_THAT(error.what(), HasSubstr((folder / "a.lmdb").string()));
}

}  // namespace
}  // namespace millrace
