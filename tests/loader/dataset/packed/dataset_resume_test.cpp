// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;

constexpr std::uint64_t records = 40;

WriterOptions options(bool resume, const std::string& source = "forty records") {
  WriterOptions options;
  options.resume = resume;
  options.commit_bytes = 50000;
  options.source = source;
  return options;
}

/// Continues writing at the writer's position; each fifth item is left out.
void write_on(DatasetWriter& writer, std::uint64_t end = records) {
  for (std::uint64_t item = writer.items(); item < end; ++item)
    if (item % 5 == 4)
      writer.leave_out("reason " + std::to_string(item));
    else
      append_record(writer, item);
}

void expect_items(const DatasetWriter& writer, std::uint64_t items) {
  EXPECT_EQ(writer.items(), items);
  EXPECT_EQ(writer.size(), items - items / 5);
  const std::vector<LeftOutItem> left_out = writer.left_out();
  ASSERT_EQ(left_out.size(), items / 5);
  for (std::uint64_t number = 0; number < left_out.size(); ++number) {
    EXPECT_EQ(left_out[number].item, 5 * number + 4);
    EXPECT_EQ(left_out[number].reason, "reason " + std::to_string(5 * number + 4));
  }
}

void expect_whole(const std::filesystem::path& path) {
  const auto dataset = open_dataset(path);
  ASSERT_EQ(dataset->size(), records - records / 5);
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < dataset->size(); ++index) {
    const std::uint64_t item = index / 4 * 5 + index % 4;
    EXPECT_EQ(reader->read(index).text("path"), stored_path(item));
    EXPECT_TRUE(std::ranges::equal(reader->read(index)["image"], stored_bytes(item)));
  }
}

TEST(ResumedWriter, GoesOnBehindWhatIsCommitted) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  for (std::uint64_t end = 0; end <= records; end += 7) {
    std::filesystem::remove(path);
    std::uint64_t committed = 0;
    {
      DatasetWriter writer(path, options(false));
      write_on(writer, end);
      committed = writer.committed();
    }
    EXPECT_EQ(thrown_by([&] { (void)open_dataset(path); }).code(), ErrorCode::incomplete);
    DatasetWriter writer(path, options(true));
    EXPECT_FALSE(writer.complete());
    EXPECT_EQ(writer.committed(), committed);
    EXPECT_EQ(writer.size(), committed);
    EXPECT_LE(writer.items(), end);
    expect_items(writer, writer.items());
    write_on(writer);
    expect_items(writer, records);
    writer.finish();
    EXPECT_TRUE(writer.complete());
    expect_whole(path);
  }
}

TEST(ResumedWriter, BeginsWhereThereIsNothing) {
  const TemporaryFolder folder;
  write_file(folder / "empty.lmdb", "");
  for (const char* name : {"none.lmdb", "empty.lmdb"}) {
    DatasetWriter writer(folder / name, options(true));
    EXPECT_EQ(writer.items(), 0u);
    write_on(writer);
    writer.finish();
    expect_whole(folder / name);
  }
}

TEST(ResumedWriter, LeavesACompleteDatasetAsItIs) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  {
    DatasetWriter writer(path, options(false));
    write_on(writer);
    writer.finish();
  }
  const std::string before = file_contents(path);
  const auto reader = open_dataset(path);
  DatasetWriter writer(path, options(true));
  EXPECT_TRUE(writer.complete());
  expect_items(writer, records);
  EXPECT_EQ(thrown_by([&] { append_record(writer, 0); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(thrown_by([&] { writer.leave_out("x"); }).code(), ErrorCode::invalid_argument);
  writer.finish();
  EXPECT_EQ(file_contents(path), before);
}

TEST(ResumedWriter, RefusesWhatAnotherBegan) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  {
    DatasetWriter writer(path, options(false));
    write_on(writer, 20);
  }
  const std::string before = file_contents(path);
  const auto refused = [&](WriterOptions how) {
    const Error error = thrown_by([&] { DatasetWriter writer(path, std::move(how)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_contents(path), before);
    return std::string(error.what());
  };
  EXPECT_THAT(
      refused(options(true, "fifty records")),
      HasSubstr(
          "cannot be resumed: it was begun from \"forty records\", and this is \"fifty records\""));
  WriterOptions how = options(true);
  how.shard_bytes = 1000;
  EXPECT_THAT(refused(how),
              HasSubstr("it is one file, and this is to be shards of up to 1000 bytes"));
  how = options(true);
  how.overwrite = true;
  EXPECT_THAT(refused(how), HasSubstr("either overwritten or resumed"));

  DatasetWriter writer(path, options(true));
  const RecordField other[] = {{"image", {}}};
  EXPECT_THAT(thrown_by([&] { writer.append(other); }).what(),
              HasSubstr("has the fields image; the records before it have image, label, path"));
  EXPECT_THAT(thrown_by([&] { DatasetWriter second(path, options(true)); }).what(),
              HasSubstr("another writer"));
}

TEST(ResumedWriter, RefusesWhatAnotherVersionBegan) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  {
    DatasetWriter writer(path, options(false));
    write_on(writer, 20);
  }
  std::string bytes = file_contents(path);
  for (std::size_t at = bytes.find("millrace " MILLRACE_VERSION); at != std::string::npos;
       at = bytes.find("millrace " MILLRACE_VERSION, at))
    bytes.replace(at + 9, 1, "9");
  // A description may lack its checksum.
  for (std::size_t at = bytes.find("\"checksum\""); at != std::string::npos;
       at = bytes.find("\"checksum\"", at))
    bytes.replace(at + 1, 8, "checksun");
  write_file(path, bytes);
  const Error error = thrown_by([&] { DatasetWriter writer(path, options(true)); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("cannot be resumed: it was begun by millrace 9"));
}

TEST(ResumedWriter, RefusesWhatIsNoDataset) {
  const TemporaryFolder folder;
  write_file(folder / "text", std::string(10000, 'x'));
  write_file(folder / "brace", "{" + std::string(10000, 'x'));
  for (const char* name : {"text", "brace"})
    for (const std::uint64_t shard_bytes : {0u, 1000u}) {
      WriterOptions how = options(true);
      how.shard_bytes = shard_bytes;
      const Error error = thrown_by([&] { DatasetWriter writer(folder / name, how); });
      EXPECT_THAT(error.code(), ::testing::AnyOf(ErrorCode::corrupt, ErrorCode::invalid_argument))
          << error.what();
      EXPECT_EQ(std::filesystem::file_size(folder / name), name[0] == 't' ? 10000u : 10001u);
    }
}

/// The bytes of an incomplete file. Finds parts of it by LMDB's format.
struct IncompleteFile {
  std::string bytes;

  template <typename T>
  T at(std::size_t offset) const {
    T value;
    std::memcpy(&value, &bytes.at(offset), sizeof value);
    return value;
  }
  template <typename T>
  void put(std::size_t offset, T value) {
    std::memcpy(&bytes.at(offset), &value, sizeof value);
  }
  std::size_t page_bytes() const { return at<std::uint32_t>(40); }
  std::size_t newest_meta() const {
    return at<std::uint64_t>(page_bytes() + 144) > at<std::uint64_t>(144) ? page_bytes() : 0;
  }
  std::uint64_t main_root() const { return at<std::uint64_t>(newest_meta() + 88 + 40); }
  /// The value of the first node on the root of the tree of free pages.
  std::size_t free_list() const {
    const std::size_t page = at<std::uint64_t>(newest_meta() + 40 + 40) * page_bytes();
    return page + at<std::uint16_t>(page + 16) + 8 + 8;
  }
};

TEST(ResumedWriter, RefusesWhatWouldLeadLmdbAstray) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  WriterOptions how = options(false);
  how.commit_bytes = 1;
  {
    DatasetWriter writer(path, how);
    write_on(writer, 20);
  }
  const IncompleteFile sound{file_contents(path)};
  ASSERT_GT(sound.at<std::uint64_t>(sound.free_list()), 0u);
  using Change = void (*)(IncompleteFile&);
  const std::pair<const char*, Change> changes[] = {
      {"has an impossible list of free pages",
       [](IncompleteFile& file) { file.put(file.free_list(), std::uint64_t{1} << 40); }},
      {"has an impossible list of free pages",
       [](IncompleteFile& file) { file.put(file.free_list() + 8, std::uint64_t{1} << 40); }},
      {"has a key that is not a number",  // what was the key is the value's begin now
       [](IncompleteFile& file) {
         file.put(file.free_list() - 10, std::uint16_t{0});
         file.put(file.free_list() - 16,
                  static_cast<std::uint16_t>(file.at<std::uint16_t>(file.free_list() - 16) + 8));
       }},
      {"is used twice",
       [](IncompleteFile& file) { file.put(file.free_list() + 8, file.main_root()); }},
      {"has an impossible list of free pages",
       [](IncompleteFile& file) { file.put(file.free_list() - 8, std::uint64_t{1} << 40); }},
      {"is the root of an impossible tree",
       [](IncompleteFile& file) { file.bytes[file.newest_meta() + 40 + 4] ^= 0x04; }},
      {"is the root of a tree that is not as large as it should be",
       [](IncompleteFile& file) { file.bytes[file.newest_meta() + 88 + 16] ^= 1; }},
      {"are not of two commits",
       [](IncompleteFile& file) {
         file.put(file.newest_meta() + 144,
                  file.at<std::uint64_t>(file.newest_meta() + 144) + 1000);
       }},
      {"is not a sound meta page",
       [](IncompleteFile& file) { file.bytes[file.page_bytes()] ^= 1; }},
      {"has nodes that overlap, or gaps between them",
       [](IncompleteFile& file) {
         const std::size_t upper = file.main_root() * file.page_bytes() + 14;
         file.put(upper, static_cast<std::uint16_t>(file.at<std::uint16_t>(upper) - 2));
       }},
  };
  for (const auto& [reason, change] : changes) {
    IncompleteFile file = sound;
    change(file);
    write_file(path, file.bytes);
    const Error error = thrown_by([&] { DatasetWriter writer(path, options(true)); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_THAT(error.what(), ::testing::StartsWith(path.string() + " is damaged, so nothing is "
                                                                    "added to it: page "));
    EXPECT_THAT(error.what(), HasSubstr(reason));
    EXPECT_TRUE(file_contents(path) == file.bytes) << reason;
  }
  write_file(path, sound.bytes);
  DatasetWriter writer(path, options(true));
  write_on(writer);
  writer.finish();
  expect_whole(path);
}

/// Checks that a sharded writer refuses to continue after a shard whose records were changed, and
/// continues once the shard is restored.
void expect_checked(const std::filesystem::path& path, const std::filesystem::path& shard,
                    const WriterOptions& how) {
  const std::string sound = file_contents(shard);
  std::string damaged = sound;
  // Pages of earlier commits have it, too.
  for (std::size_t at = 0; (at = damaged.find(stored_path(0), at)) != std::string::npos;)
    damaged[at] ^= 1;
  write_file(shard, damaged);
  const Error error = thrown_by([&] { DatasetWriter writer(path, how); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.what(), HasSubstr(shard.string() + " is damaged, so nothing is added to it: "
                                                       "record 0: its bytes do not match"));
  EXPECT_TRUE(file_contents(shard) == damaged);
  write_file(shard, sound);
  DatasetWriter writer(path, how);
  write_on(writer);
  writer.finish();
  expect_whole(path);
}

TEST(ResumedWriter, ChecksFinishedShards) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  WriterOptions how = options(true);
  how.shard_bytes = 60000;
  {
    DatasetWriter writer(path, how);
    write_on(writer, 20);
  }
  expect_checked(path, folder / "a-00000.lmdb", how);
}

TEST(ResumedWriter, ChecksAShardThatWasFinishedJustBefore) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  WriterOptions how = options(true);
  how.shards = 1;
  how.source_items = records;
  {
    DatasetWriter writer(path, how);
    write_on(writer);
    writer.finish();
  }
  nlohmann::json index = nlohmann::json::parse(file_contents(path));
  index["complete"] = false;
  index["begun"] = index["shards"][0]["file"];
  index["shards"].clear();
  index["records"] = 0;
  index["fingerprint"] = "0000000000000000";
  write_file(path, index.dump());
  expect_checked(path, folder / "a-00000-of-00001.lmdb", how);
}

TEST(ResumedWriter, GoesOnWithAMapThatHadGrown) {
  const TemporaryFolder folder;
  const std::vector<std::byte> megabyte(1 << 20, std::byte{3});
  const RecordField fields[] = {{"image", megabyte}};
  for (const std::uint64_t end : {70u, 73u}) {
    DatasetWriter writer(folder / "a.lmdb", options(true));
    EXPECT_EQ(writer.size(), end == 70 ? 0u : 70u);
    while (writer.size() < end) writer.append(fields);
    if (end == 73) writer.finish();
  }
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 73u);
}

TEST(ResumedWriter, GoesOnWhenKilledAtACommit) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  for (const std::uint64_t shard_bytes : {0u, 60000u}) {
    WriterOptions how = options(true);
    how.shard_bytes = shard_bytes;
    std::uint64_t before = 0;
    for (int life = 0; before < records && life < 100; ++life) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        DatasetWriter writer(path, how);
        const std::uint64_t committed = writer.committed();
        while (writer.items() < records && writer.committed() == committed)
          write_on(writer, writer.items() + 1);
        if (writer.items() == records) writer.finish();
        raise(SIGKILL);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status));
      DatasetWriter writer(path, how);
      EXPECT_GT(writer.items(), before);
      before = writer.items();
      expect_items(writer, before);
      if (before == records) {
        EXPECT_TRUE(writer.complete());
      }
    }
    expect_whole(path);
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace millrace
