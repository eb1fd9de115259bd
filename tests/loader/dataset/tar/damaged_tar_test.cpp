// SPDX-License-Identifier: Apache-2.0
//
// Tars that are damaged, cut short, or made shorter while they are open.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/random.h>

#include <string>

#include "support/damages.h"
#include "support/stored_records.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using namespace testing;

std::string tar_contents(const TemporaryFolder& folder) {
  TarFile tar;
  for (int sample = 0; sample < 8; ++sample) {
    const std::string key = std::to_string(sample);
    if (sample % 3 == 1)
      tar.add("././@LongLink", "folder/" + std::string(150, 'n') + key + ".jpg" + '\0', 'L');
    if (sample % 3 == 2) tar.add("x", "17 path=folder/" + key + "\n", 'x');
    tar.add(key + ".jpg", std::string(static_cast<std::size_t>(sample) * 700, 'a'));
    tar.add(key + ".json", R"({"label": 3, "of": [1, 2]})");
  }
  tar.write(folder / "sound.tar");
  return file_contents(folder / "sound.tar");
}

/// Reads all of a tar. Returns whether it opens. Only errors for damaged input may occur.
bool read_all(const fs::path& path, bool map) {
  try {
    const auto dataset = open_dataset(path, {.map = map, .format = "tars"});
    const auto reader = dataset->make_reader();
    for (std::uint64_t index = 0; index < dataset->size(); ++index) {
      (void)dataset->key(index);
      try {
        unsigned sum = 0;
        const Record record = reader->read(index);
        for (const RecordField& field : record.fields())
          for (const std::byte byte : field.bytes) sum += std::to_integer<unsigned>(byte);
        EXPECT_GE(sum, 0U);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_record) << error.what();
      }
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
    return false;
  }
}

TEST(DamagedTar, EndsInAnErrorOrABadRecord) {
  const TemporaryFolder folder;
  const std::string sound = tar_contents(folder);
  const fs::path path = folder / "a.tar";
  std::uint64_t refused = 0;
  const std::uint64_t times = damages(1500);
  for (std::uint64_t time = 0; time < times; ++time) {
    Random random(11, time);
    std::string contents = sound;
    for (std::uint64_t change = random.below(3) + 1; change > 0; --change) {
      // Mostly in the headers.
      const std::size_t at = random.below(2) == 0
                                 ? random.below(contents.size())
                                 : random.below(contents.size() / 512) * 512 + random.below(160);
      if (random.below(2) == 0)
        contents[at] ^= static_cast<char>(1 << random.below(8));
      else
        contents[at] = "0179 x\0\x80\xFF"[random.below(9)];
    }
    write_file(path, contents);
    if (!read_all(path, time % 2 == 0)) ++refused;
  }
  EXPECT_GT(refused, times / 4);
  EXPECT_LT(refused, times);
}

TEST(DamagedTar, ThatIsCutShortIsRefused) {
  const TemporaryFolder folder;
  const std::string sound = tar_contents(folder);
  const fs::path path = folder / "a.tar";
  const std::size_t last_member_ends = sound.size() - 1024;
  for (std::size_t bytes = 1; bytes < sound.size(); bytes += bytes < 3000 ? 1 : 97) {
    write_file(path, sound.substr(0, bytes));
    EXPECT_EQ(read_all(path, bytes % 2 == 0), bytes >= last_member_ends + 512) << bytes;
  }
}

TEST(DamagedTar, MadeShorterWhileItIsOpenHasBadRecords) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.tar";
  TarFile tar;
  for (const char* key : {"a", "b", "c"}) {
    tar.add(std::string(key) + ".jpg", std::string(30'000, 'a'));
    tar.add(std::string(key) + ".cls", "1");
  }
  tar.write(path);
  const std::size_t sample_bytes = tar.size() / 3;
  for (const bool map : {true, false})
    for (const std::size_t lost : {std::size_t{600}, std::size_t{5000}, sample_bytes - 1500}) {
      SCOPED_TRACE(std::to_string(lost) + (map ? " mapped" : " call by call"));
      tar.write(path);
      const auto dataset = open_dataset(path, {.map = map});
      const auto reader = dataset->make_reader();
      EXPECT_EQ(reader->read(2).integer("label"), 1);
      EXPECT_TRUE(reader->intact().is_ok());
      fs::resize_file(path, 3 * sample_bytes - lost);
      EXPECT_EQ(reader->intact().is_ok(), !map);
      EXPECT_EQ(reader->read(0).integer("label"), 1);
      EXPECT_TRUE(reader->intact().is_ok());
      std::string reason;
      try {
        (void)reader->read(2);
        reason = reader->intact().reason();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_record);
        reason = error.reason();
      }
      EXPECT_THAT(reason, HasSubstr(path.string() + " cannot be read at byte"));
    }
}

}  // namespace
}  // namespace millrace
