// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "dataset/packed/lmdb_file.h"
#include "dataset/packed/record_format.h"
#include "support/sanitizers.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

#if defined(MILLRACE_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace testing;

void append_bytes(DatasetWriter& writer, std::size_t bytes, std::byte value = std::byte{7}) {
  const std::vector<std::byte> payload(bytes, value);
  const RecordField fields[] = {{"image", payload}};
  writer.append(fields);
}

TEST(DatasetWriter, TellsTheDatasetsPathOnceItHasReplacedAnother) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  for (const std::uint64_t shards : {0U, 2U}) {
    write_dataset(path, 3);
    DatasetWriter writer(path, {.overwrite = true, .shards = shards, .source_items = 5});
    EXPECT_EQ(writer.path(), folder / "a.lmdb.replacement");
    for (std::uint64_t index = 0; index < 5; ++index) append_record(writer, index);
    writer.finish();
    EXPECT_EQ(writer.path(), path);
    EXPECT_EQ(open_dataset(writer.path())->size(), 5U);
    std::filesystem::remove(path);
  }
}

TEST(DatasetWriter, NeverOverwritesUnasked) {
  const TemporaryFolder folder;
  write_file(folder / "a.lmdb", "precious");
  const Error error = thrown_by([&] { DatasetWriter writer(folder / "a.lmdb"); });
  EXPECT_EQ(error.code(), ErrorCode::already_exists);
  EXPECT_THAT(error.what(), HasSubstr((folder / "a.lmdb").string()));
  EXPECT_EQ(file_contents(folder / "a.lmdb"), "precious");
}

TEST(DatasetWriter, ReplacedFilesStayWithTheirReaders) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 10);
  const auto old = open_dataset(folder / "a.lmdb");
  write_dataset(folder / "a.lmdb", 20);
  EXPECT_EQ(old->size(), 10u);
  expect_record(old->make_reader()->read(9), 9);
  const auto replaced = open_dataset(folder / "a.lmdb");
  EXPECT_EQ(replaced->size(), 20u);
  expect_record(replaced->make_reader()->read(19), 19);
}

TEST(DatasetWriter, LetsNoSecondWriterIn) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb");
  for (const bool overwrite : {false, true}) {
    const Error error =
        thrown_by([&] { DatasetWriter second(folder / "a.lmdb", {.overwrite = overwrite}); });
    EXPECT_EQ(error.code(), ErrorCode::already_exists);
    EXPECT_THAT(error.what(), HasSubstr("being written by another writer"));
  }
  append_record(writer, 0);
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 1u);
  EXPECT_NO_THROW(DatasetWriter(folder / "a.lmdb", {.overwrite = true}));
}

TEST(DatasetWriter, CannotWriteWhereThereIsNoFolder) {
  const TemporaryFolder folder;
  for (const bool overwrite : {false, true}) {
    const Error error = thrown_by(
        [&] { DatasetWriter writer(folder / "missing" / "a.lmdb", {.overwrite = overwrite}); });
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
  EXPECT_EQ(thrown_by([&] { DatasetWriter writer(folder.path(), {.overwrite = true}); }).code(),
            ErrorCode::io);
}

TEST(DatasetWriter, IsIncompleteUntilFinished) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  {
    DatasetWriter writer(path, {.commit_bytes = 1});
    EXPECT_THAT(thrown_by([&] { (void)open_dataset(path); }).what(),
                HasSubstr("is being written at this moment (0 records were"));
    append_record(writer, 0);
    append_record(writer, 1);
    EXPECT_EQ(writer.committed(), 2u);
    const Error error = thrown_by([&] { (void)open_dataset(path); });
    EXPECT_EQ(error.code(), ErrorCode::incomplete);
    EXPECT_THAT(error.what(), HasSubstr("is being written at this moment (2 records were"));
  }
  const Error error = thrown_by([&] { (void)open_dataset(path); });
  EXPECT_EQ(error.code(), ErrorCode::incomplete);
  EXPECT_THAT(
      error.what(),
      HasSubstr(path.string() +
                " is incomplete: its packing was interrupted after 2 records were committed"));
}

TEST(DatasetWriter, CommitsAsItGoes) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb", {.commit_bytes = 10000});
  for (int record = 0; record < 9; ++record) append_bytes(writer, 3000);
  EXPECT_EQ(writer.size(), 9u);
  EXPECT_EQ(writer.committed(), 8u);
  writer.finish();
  EXPECT_EQ(writer.committed(), 9u);
}

TEST(DatasetWriter, GrowsItsMap) {
  const TemporaryFolder folder;
  constexpr std::size_t megabyte = std::size_t{1} << 20;
  // The map outgrows its first size in many commits, and in one.
  for (const std::size_t commit_bytes : {8 * megabyte, 512 * megabyte}) {
    DatasetWriter writer(folder / "a.lmdb", {.overwrite = true, .commit_bytes = commit_bytes});
    for (unsigned record = 0; record < 150; ++record)
      append_bytes(writer, megabyte, static_cast<std::byte>(record));
    writer.finish();
    const auto dataset = open_dataset(folder / "a.lmdb");
    ASSERT_EQ(dataset->size(), 150u);
    const auto reader = dataset->make_reader();
    for (unsigned record = 0; record < 150; ++record) {
      const auto bytes = reader->read(record)["image"];
      ASSERT_EQ(bytes.size(), megabyte);
      ASSERT_EQ(bytes.front(), static_cast<std::byte>(record));
      ASSERT_EQ(bytes.back(), static_cast<std::byte>(record));
    }
  }
}

TEST(DatasetWriter, AnEmptyDatasetIsComplete) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb");
  writer.finish();
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 0u);
  EXPECT_EQ(thrown_by([&] { append_record(writer, 0); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(thrown_by([&] { writer.set_classes({}); }).code(), ErrorCode::invalid_argument);
}

TEST(DatasetWriter, RefusesOtherFields) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb");
  const auto refused = [&](std::vector<RecordField> fields) {
    const Error error = thrown_by([&] { writer.append(fields); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_THAT(refused({}), HasSubstr("record 0 of"));
  EXPECT_THAT(refused({{"", {}}}), HasSubstr("without a name"));
  EXPECT_THAT(refused({{"a", {}}, {"a", {}}}), HasSubstr("two fields named \"a\""));
  append_record(writer, 0);
  EXPECT_THAT(
      refused({{"image", {}}, {"path", {}}, {"label", {}}}),
      HasSubstr(
          "record 1 of " + (folder / "a.lmdb").string() +
          " has the fields image, path, label; the records before it have image, label, path"));
  append_record(writer, 1);
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 2u);
}

TEST(DatasetWriter, MovesAndSaysSoWhenMovedFrom) {
  const TemporaryFolder folder;
  DatasetWriter first(folder / "a.lmdb");
  append_record(first, 0);
  DatasetWriter second = std::move(first);
  append_record(second, 1);
  EXPECT_EQ(second.size(), 2u);
  EXPECT_EQ(first.size(), 0u);
  EXPECT_EQ(first.committed(), 0u);
  EXPECT_EQ(thrown_by([&] { append_record(first, 1); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(thrown_by([&] { first.set_classes({}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(thrown_by([&] { first.finish(); }).code(), ErrorCode::invalid_argument);
  first = std::move(second);
  first.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 2u);
}

TEST(DatasetWriter, AsksForAnLmdbWhoseFilesCanBeRead) {
  check_lmdb_version("a.lmdb", 0, 9, 24);
  const Error error = thrown_by([] { check_lmdb_version("a.lmdb", 1, 0, 3); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_STREQ(error.what(),
               "a.lmdb: cannot be written with LMDB 1.0.3 (data version 2 or newer, expected 1 as "
               "LMDB 0.9 writes); run millrace with LMDB 0.9");
}

TEST(DatasetWriter, KeepsClassNamesThatAreNoUtf8) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb");
  const std::vector<std::string> names = {"caf\xc3\xa9", "caf\xe9", "caf\xe8"};
  writer.set_classes(names);
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->classes(), names);
  DatasetWriter shards(folder / "b.lmdb", {.shard_bytes = 1000});
  shards.set_classes(names);
  append_bytes(shards, 4);
  shards.finish();
  EXPECT_EQ(open_dataset(folder / "b.lmdb")->classes(), names);
}

TEST(DatasetWriter, KeepsWhatIsSaidOfFields) {
  const TemporaryFolder folder;
  const std::vector<FieldSpec> specs = {{"image", DType::uint8, {7, 2}, true},
                                        {"score", DType::bfloat16, {}}};
  {
    DatasetWriter writer(folder / "a.lmdb", {.field_specs = specs});
    EXPECT_THAT(thrown_by([&] { append_bytes(writer, 4); }).what(),
                HasSubstr("record 0 of " + (folder / "a.lmdb").string() +
                          " has no field \"score\", which WriterOptions::field_specs names"));
    const std::vector<std::byte> bytes(6);
    const RecordField fields[] = {{"image", bytes}, {"score", std::span(bytes).first(2)}};
    writer.append(fields);
  }
  DatasetWriter writer(folder / "a.lmdb", {.resume = true, .field_specs = specs});
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->field_specs(), specs);
}

TEST(RecordFormat, RefusesDescriptionsOfNoField) {
  Description description;
  description.fields = {"a"};
  const std::string json = to_json(description);
  const std::string none = "\"field_specs\":[]";
  const std::string unchecked = json.substr(0, json.find("\"checksum\"")) +
                                json.substr(json.find(',', json.find("\"checksum\"")) + 1);
  const auto with = [&](const std::string& spec) {
    std::string text = unchecked;
    return text.replace(text.find(none), none.size(), "\"field_specs\":[" + spec + "]");
  };
  const Description good = parse_description(with(R"(["a","int16",[3,4],false])"), "f");
  EXPECT_THAT(good.field_specs, ::testing::ElementsAre(FieldSpec{"a", DType::int16, {3, 4}}));
  for (const char* bad :
       {R"(["a","int24",[3],false])", R"(["a","int16",[3,-4],false])", R"(["a","int16",3,false])",
        R"(["a","int16",[1,1,1,1,1,1,1],false])", R"(["a","int16",[],true])",
        R"(["a","int16",[3],1])", R"(["a","int16",[3]])", R"([1,"int16",[3],false])", "7"}) {
    const Error error = thrown_by([&] { (void)parse_description(with(bad), "f"); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << bad;
    EXPECT_THAT(error.what(), ::testing::StartsWith("f ")) << bad;
  }
}

// Appends until it fails. Checks the error, the file that remains, and resuming once there is room.
void expect_full(const std::filesystem::path& path, const std::function<void()>& make_room) {
  auto writer = std::make_optional<DatasetWriter>(path, WriterOptions{.commit_bytes = 300000});
  const Error error = thrown_by([&] {
    for (int record = 0; record < 1000; ++record) append_bytes(*writer, 100000);
  });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_GT(writer->committed(), 0u);
  const std::string committed = std::to_string(writer->committed());
  EXPECT_THAT(error.what(), HasSubstr(path.string() + " cannot be written: "));
  EXPECT_THAT(error.what(), ContainsRegex("No space left|File too large|disk is full"));
  EXPECT_THAT(error.what(), HasSubstr(committed + " records are committed and stay in it"));
  make_room();
  EXPECT_STREQ(thrown_by([&] { append_bytes(*writer, 1); }).what(), error.what());
  EXPECT_STREQ(thrown_by([&] { writer->finish(); }).what(), error.what());
  writer.reset();
  const Error opened = thrown_by([&] { (void)open_dataset(path); });
  EXPECT_EQ(opened.code(), ErrorCode::incomplete);
  EXPECT_THAT(opened.what(), HasSubstr("interrupted after " + committed + " records were"));
}

TEST(DatasetWriter, SaysThatTheFileMayGrowNoFurther) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 5'000'000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_full(folder / "a.lmdb", [&] { setrlimit(RLIMIT_FSIZE, &before); });
  std::signal(SIGXFSZ, old_handler);
}

// LMDB asserts that a branch page has two keys. The writer sees the change through its map.
TEST(DatasetWriter, ReportsAFailedAssertionOfLmdb) {
#if defined(MILLRACE_ASAN)
  const __lsan::ScopedDisabler leaks_pages;
#endif
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  DatasetWriter writer(path, {.commit_bytes = 1});
  append_bytes(writer, 100);
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t record = file_contents(path).find(std::string(100, 7));
  ASSERT_NE(record, std::string::npos);
  constexpr std::size_t flags_offset = 10;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(record / page_bytes * page_bytes + flags_offset))
      .put(1);
  const Error error = thrown_by([&] { append_bytes(writer, 100); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), ContainsRegex("a.lmdb cannot be written: .*Assertion .* failed in "));
  EXPECT_THAT(error.what(), HasSubstr("1 records are committed and stay in it"));
  EXPECT_STREQ(thrown_by([&] { writer.finish(); }).what(), error.what());
}

struct Unmount {
  std::filesystem::path path;
  ~Unmount() { umount(path.c_str()); }
};

TEST(DatasetWriter, SaysThatTheDiskIsFull) {
  const TemporaryFolder folder;
  const std::filesystem::path disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (mount("millrace-test", disk.c_str(), "tmpfs", 0, "size=5m") != 0)
    GTEST_SKIP() << "may not mount a small file system";
  const Unmount at_end{disk};
  expect_full(disk / "a.lmdb", [&] {
    EXPECT_EQ(mount("millrace-test", disk.c_str(), "tmpfs", MS_REMOUNT, "size=50m"), 0);
  });
}

TEST(DatasetWriter, KilledKeepsWhatItCommitted) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    DatasetWriter writer(folder / "a.lmdb", {.commit_bytes = 10000});
    for (int record = 0; record < 9; ++record) append_bytes(writer, 3000);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Error error = thrown_by([&] { (void)open_dataset(folder / "a.lmdb"); });
  EXPECT_EQ(error.code(), ErrorCode::incomplete);
  EXPECT_THAT(error.what(), HasSubstr("interrupted after 8 records were"));
}

}  // namespace
}  // namespace millrace
