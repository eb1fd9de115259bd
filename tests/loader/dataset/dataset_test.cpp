// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <lmdb.h>
#include <millrace/dataset.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support/foreign_lmdb.h"
#include "support/sanitizers.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace testing;

TEST(Dataset, GivesBackEveryRecord) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 300);
  const auto dataset = open_dataset(folder / "a.lmdb");
  ASSERT_EQ(dataset->size(), 300u);
  EXPECT_EQ(dataset->name(), (folder / "a.lmdb").string());
  EXPECT_EQ(dataset->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(dataset->facts().files, (std::vector<std::string>{folder / "a.lmdb"}));
  EXPECT_EQ(dataset->facts().format, "packed file");
  EXPECT_EQ(open_dataset(folder / "a.lmdb", {.format = "packed file"})->size(), 300U);
  EXPECT_EQ(dataset->key(7), stored_path(7));
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < 300; ++index) expect_record(reader->read(index), index);
  for (std::uint64_t index = 300; index-- > 0;) expect_record(reader->read(index), index);
}

TEST(Dataset, RecordsPointIntoTheMap) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 20);
  const auto dataset = open_dataset(folder / "a.lmdb");
  const std::vector<Mapping> mappings = mappings_of(folder / "a.lmdb");
  ASSERT_THAT(mappings, SizeIs(1));
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 1; index < 20; ++index) {
    const auto image = reinterpret_cast<std::uintptr_t>(reader->read(index)["image"].data());
    EXPECT_GE(image, mappings[0].begin);
    EXPECT_LT(image, mappings[0].end);
  }
}

TEST(Dataset, RefusesAnIndexBeyondItsEnd) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 3);
  const auto dataset = open_dataset(folder / "a.lmdb");
  const auto reader = dataset->make_reader();
  const Error error = thrown_by([&] { (void)reader->read(3); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("record 3 "));
  EXPECT_THAT(error.what(), HasSubstr("3 records"));
  EXPECT_EQ(dataset->key(3), "record 3");
}

Error opening(const std::filesystem::path& path) {
  return thrown_by([&] { (void)open_dataset(path); });
}

TEST(Dataset, SaysWhatAPathIsThatIsNoDataset) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::filesystem::path& path, ErrorCode code,
                          const std::string& text) {
    const Error error = opening(path);
    EXPECT_EQ(error.code(), code) << path;
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
  };
  expect(folder / "missing.lmdb", ErrorCode::not_found, "does not exist");
  expect(folder / "missing" / "a.lmdb", ErrorCode::not_found, "does not exist");
  expect(folder.path(), ErrorCode::corrupt, "is a folder");
  expect("/dev/null", ErrorCode::corrupt, "neither file nor folder");
  write_file(folder / "data.mdb", "x");
  expect(folder.path(), ErrorCode::corrupt, "data.mdb");
  write_file(folder / "empty", "");
  expect(folder / "empty", ErrorCode::incomplete, "is empty");
  write_file(folder / "text", std::string(10000, 'x'));
  expect(folder / "text", ErrorCode::corrupt, "not an LMDB file");

  make_foreign_lmdb(folder / "plain", "", "key", "value");
  expect(folder / "plain", ErrorCode::corrupt, "not a millrace dataset");
  make_foreign_lmdb(folder / "other", "other", "key", "value");
  expect(folder / "other", ErrorCode::corrupt, "several databases (other, records)");
  make_foreign_lmdb(folder / "newer", "meta", "description", R"({"format": 99, "more": []})");
  expect(folder / "newer", ErrorCode::corrupt, "newer millrace");
  make_foreign_lmdb(folder / "broken", "meta", "description", R"({"format": 1, "complete": tr)");
  expect(folder / "broken", ErrorCode::corrupt, "damaged description");
  make_foreign_lmdb(folder / "lacking", "meta", "description",
                    R"({"format": 1, "complete": true})");
  expect(folder / "lacking", ErrorCode::corrupt, "damaged description");
  make_foreign_lmdb(folder / "fewer", "meta", "description",
                    R"({"format":1,"complete":true,"records":9,"fields":["a"],"classes":[],)"
                    R"("fingerprint":"0","created_by":""})");
  expect(folder / "fewer", ErrorCode::corrupt, "9 records");
}

TEST(Dataset, OpenedTwiceIsMappedOnce) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 10);
  std::filesystem::create_hard_link(folder / "a.lmdb", folder / "b.lmdb");
  std::filesystem::create_symlink(folder / "a.lmdb", folder / "c.lmdb");
  {
    const auto first = open_dataset(folder / "a.lmdb");
    const auto second = open_dataset(folder / "b.lmdb");
    auto third = open_dataset(folder / "c.lmdb", {.verify_checksums = false});
    EXPECT_EQ(mappings_of(folder / "a.lmdb").size() + mappings_of(folder / "b.lmdb").size(), 1u);
    expect_record(first->make_reader()->read(3), 3);
    expect_record(second->make_reader()->read(4), 4);
    third.reset();
    expect_record(second->make_reader()->read(5), 5);
  }
  EXPECT_TRUE(mappings_of(folder / "a.lmdb").empty());
}

TEST(Dataset, ReadersOfSeveralDatasetsAreUsedByTurns) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 10);
  write_dataset(folder / "b.lmdb", 20);
  const auto a = open_dataset(folder / "a.lmdb");
  const auto b = open_dataset(folder / "b.lmdb");
  const auto first = a->make_reader();
  const auto second = b->make_reader();
  const auto third = a->make_reader();
  for (std::uint64_t round = 0; round < 10; ++round) {
    const Record record = first->read(9 - round);
    expect_record(second->read(19 - round), 19 - round);
    expect_record(third->read(round), round);
    expect_record(record, 9 - round);  // it is valid until its own reader reads again
  }
}

TEST(Dataset, AReaderKeepsWhatItReadsFrom) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 10);
  auto reader = open_dataset(folder / "a.lmdb")->make_reader();
  expect_record(reader->read(9), 9);
  EXPECT_THAT(mappings_of(folder / "a.lmdb"), SizeIs(1));
  const Error error = thrown_by([&] { (void)reader->read(10); });
  EXPECT_THAT(error.what(), HasSubstr((folder / "a.lmdb").string() + " has 10 records"));
  reader.reset();
  EXPECT_TRUE(mappings_of(folder / "a.lmdb").empty());
}

TEST(Dataset, IsReadByManyThreadsAtOnce) {
  const TemporaryFolder folder;
  constexpr std::uint64_t records = 200;
  write_dataset(folder / "a.lmdb", records);
  const auto dataset = open_dataset(folder / "a.lmdb");
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      const auto reader = dataset->make_reader();
      for (std::uint64_t step = 0; step < 2 * records; ++step) {
        const std::uint64_t index = (step * 7 + thread * 50) % records;
        expect_record(reader->read(index), index);
        if (step % 16 == 0)
          dataset->prefetch(std::vector<std::uint64_t>{index, index + 1, records + 1});
        if (step % 50 == 0) {
          EXPECT_EQ(dataset->key(index), stored_path(index));
        }
      }
    });
}

TEST(Dataset, AChildOfForkOpensOneThoughAnotherThreadWasAboutTo) {
#if defined(MILLRACE_ASAN) || defined(MILLRACE_TSAN)
  GTEST_SKIP() << "a sanitizer's own locks may be held during fork(), and hang the child";
#endif
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 10);
  std::jthread opener([&folder](const std::stop_token& stop) {
    while (!stop.stop_requested()) EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 10U);
  });
  for (int k = 0; k < 100; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(open_dataset(folder / "a.lmdb")->size() == 10 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "fork " << k;
  }
}

/// Returns how many pages of a file are in memory.
std::size_t resident_pages(const std::filesystem::path& path) {
  const std::size_t bytes = std::filesystem::file_size(path);
  const int file = open(path.c_str(), O_RDONLY);
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  std::vector<unsigned char> in_memory((bytes + page_bytes - 1) / page_bytes);
  EXPECT_EQ(mincore(map, bytes, in_memory.data()), 0);
  munmap(map, bytes);
  return static_cast<std::size_t>(
      std::ranges::count_if(in_memory, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(Dataset, PrefetchBringsRecordsIntoMemory) {
  const TemporaryFolder folder;
  constexpr std::uint64_t records = 300;
  write_dataset(folder / "a.lmdb", records);
  const auto dataset = open_dataset(folder / "a.lmdb");
  const int file = open((folder / "a.lmdb").c_str(), O_RDONLY);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
  const std::size_t all = std::filesystem::file_size(folder / "a.lmdb") / page_bytes;
  if (resident_pages(folder / "a.lmdb") > all / 4)
    GTEST_SKIP() << "this file system does not let go of cached pages";

  std::vector<std::uint64_t> indices(records);
  for (std::uint64_t index = 0; index < records; ++index) indices[index] = records - 1 - index;
  indices.push_back(records);
  indices.push_back(UINT64_MAX);
  dataset->prefetch(indices);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (resident_pages(folder / "a.lmdb") < all * 9 / 10 &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GE(resident_pages(folder / "a.lmdb"), all * 9 / 10);
}

TEST(Record, SaysWhichFieldIsWrong) {
  const std::int32_t number = 5;
  const RecordField fields[] = {{"image", {}}, {"label", std::as_bytes(std::span(&number, 1))}};
  const Record record(8, fields);
  EXPECT_TRUE(record.has("image"));
  EXPECT_FALSE(record.has("path"));
  const Error missing = thrown_by([&] { (void)record["path"]; });
  EXPECT_EQ(missing.code(), ErrorCode::not_found);
  EXPECT_THAT(missing.what(),
              HasSubstr("record 8 has no field \"path\"; its fields are: image, label"));
  const Error short_integer = thrown_by([&] { (void)record.integer("label"); });
  EXPECT_EQ(short_integer.code(), ErrorCode::corrupt);
  EXPECT_THAT(short_integer.what(), HasSubstr("4 bytes"));
}

TEST(Dataset, HasDefaultsForWhatADatasetNeedNotKnow) {
  struct Nothing : Dataset {
    std::uint64_t size() const override { return 0; }
    std::unique_ptr<DatasetReader> make_reader() const override { return nullptr; }
    std::string name() const override { return "nothing"; }
  };
  const Nothing dataset;
  dataset.prefetch(std::vector<std::uint64_t>{1, 2});
  EXPECT_EQ(dataset.key(3), "record 3");
  EXPECT_TRUE(dataset.classes().empty());
  EXPECT_TRUE(dataset.facts().files.empty());
}

}  // namespace
}  // namespace millrace
