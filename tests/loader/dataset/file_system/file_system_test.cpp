// SPDX-License-Identifier: Apache-2.0
//
// Datasets on file systems that lack something: shared maps (FUSE with direct I/O), maps at all,
// file locks (Lustre), calls that no signal interrupts.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/runtime.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "loader/dataset/file_system/failing_calls.h"
#include "support/foreign_lmdb.h"
#include "support/stored_records.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;
namespace fs = std::filesystem;

/// A dataset of each kind that is read through maps.
class MappedKinds {
 public:
  MappedKinds() {
    write_dataset(folder_ / "a.lmdb", 20);
    DatasetWriter shards(folder_ / "s.lmdb", {.shard_bytes = 40'000});
    for (std::uint64_t index = 0; index < 20; ++index) append_record(shards, index);
    shards.finish();
    Pairs pairs;
    const std::string image = "\xff\xd8\xff\xe0 as a JPEG begins";
    for (const char* key : {"k1", "k2", "k3"}) pairs.emplace_back(key, image);
    write_pairs(folder_ / "f.lmdb", pairs);
    TarFile tar;
    for (const char* key : {"1.jpg", "2.jpg"}) tar.add(key, image);
    tar.write(folder_ / "t.tar");
    write_file(folder_ / "x.bin", std::string(64, 'x'));
    write_file(folder_ / "x.json",
               R"({"format": "arrays", "raw": "x.bin", "record_bytes": 8,
                   "fields": {"x": {"dtype": "uint8", "shape": [8]}}})");
  }

  static constexpr const char* names[] = {"a.lmdb", "s.lmdb", "f.lmdb", "t.tar", "x.json"};

  fs::path operator/(const char* name) const { return folder_ / name; }
  const TemporaryFolder& folder() const { return folder_; }

  /// All records of a dataset: the bytes of their fields.
  static std::string records_of(const Dataset& dataset) {
    std::string all;
    const auto reader = dataset.make_reader();
    for (std::uint64_t index = 0; index < dataset.size(); ++index) {
      const Record record = reader->read(index);
      for (const RecordField& field : record.fields())
        all.append(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
      EXPECT_TRUE(reader->intact().is_ok());
    }
    return all;
  }

 private:
  TemporaryFolder folder_;
};

/// Opens and reads all kinds while calls fail, and compares their records and warnings.
void expect_read_with_warnings(const FailingCalls& failing, const std::string& warning) {
  const MappedKinds kinds;
  for (const char* name : MappedKinds::names) {
    const std::string sound = MappedKinds::records_of(*open_dataset(kinds / name));
    const FailingCallsScope fail(failing);
    const auto dataset = open_dataset(kinds / name);
    EXPECT_EQ(MappedKinds::records_of(*dataset), sound) << name;
    EXPECT_GT(fail.failed(), 0) << name;
    dataset->prefetch(std::vector<std::uint64_t>{0, 1});
    EXPECT_THAT(dataset->facts().warnings, ElementsAre(kinds.folder().path().string() + warning))
        << name;
  }
}

TEST(FileSystem, FilesAreMappedPrivatelyWhereSharedMapsAreRefused) {
  expect_read_with_warnings({.shared_map_error = ENODEV},
                            ": the file system refuses shared maps, as FUSE with direct I/O does; "
                            "its files are mapped privately");
}

TEST(FileSystem, FilesAreReadCallByCallWhereTheyCannotBeMapped) {
  expect_read_with_warnings({.shared_map_error = ENODEV, .private_map_error = ENODEV},
                            ": the file system cannot map files; records are read call by call, as "
                            "with OpenOptions::map = false");
}

TEST(FileSystem, AnErrorOfAMapThatIsNotTheFileSystemsIsOne) {
  const MappedKinds kinds;
  const FailingCallsScope fail({.shared_map_error = ENOMEM});
  const Error error = thrown_by([&] { (void)open_dataset(kinds / "a.lmdb"); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), HasSubstr("a.lmdb cannot be mapped: Cannot allocate memory"));
}

std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  return names;
}

TEST(FileSystem, AWriterSaysWhatItNeedsAndLeavesNothing) {
  for (const int reason : {ENOSYS, EOPNOTSUPP, ENOLCK}) {
    const TemporaryFolder folder;
    const FailingCallsScope fail({.flock_error = reason});
    for (const WriterOptions& options :
         {WriterOptions{}, WriterOptions{.overwrite = true}, WriterOptions{.resume = true},
          WriterOptions{.shard_bytes = 1000}}) {
      const Error error =
          thrown_by([&] { const DatasetWriter writer(folder / "a.lmdb", options); });
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_THAT(error.what(),
                  HasSubstr("a.lmdb cannot be locked (flock: " + std::string(strerror(reason)) +
                            "); write to another file system and copy the dataset, or mount this "
                            "one with locks (Lustre: -o flock)"));
      EXPECT_THAT(names_in(folder), IsEmpty());
    }
  }
  const TemporaryFolder folder;
  const FailingCallsScope fail({.shared_map_error = ENODEV, .private_map_error = ENODEV});
  const Error error = thrown_by([&] { const DatasetWriter writer(folder / "a.lmdb"); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(),
              HasSubstr("a.lmdb cannot be opened for writing: No such device; LMDB needs a file "
                        "system with shared maps: write to another one and copy the dataset"));
  EXPECT_THAT(names_in(folder), IsEmpty());
}

TEST(FileSystem, ADatasetStaysWhereItsReplacementCannotBeLocked) {
  const TemporaryFolder folder;
  write_dataset(folder / "a.lmdb", 3);
  const std::string sound = file_contents(folder / "a.lmdb");
  const FailingCallsScope fail({.flock_error = ENOSYS});
  for (const WriterOptions& options :
       {WriterOptions{.overwrite = true}, WriterOptions{.resume = true}})
    EXPECT_EQ(thrown_by([&] { const DatasetWriter writer(folder / "a.lmdb", options); }).code(),
              ErrorCode::io);
  EXPECT_THAT(names_in(folder), ElementsAre("a.lmdb"));
  EXPECT_EQ(file_contents(folder / "a.lmdb"), sound);
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 3u);
}

TEST(FileSystem, CallsThatASignalInterruptsAreRepeated) {
  const TemporaryFolder folder;
  write_dataset(folder / "sound.lmdb", 40);
  const std::string expected = MappedKinds::records_of(*open_dataset(folder / "sound.lmdb"));
  const FailingCallsScope fail({.interrupted = true});
  for (int round = 0; round < 4; ++round) {
    {
      DatasetWriter begun(folder / "a.lmdb", {.overwrite = true, .commit_bytes = 20'000});
      for (std::uint64_t index = 0; index < 20; ++index) append_record(begun, index);
    }
    DatasetWriter writer(folder / "a.lmdb", {.resume = true, .commit_bytes = 20'000});
    for (std::uint64_t index = writer.size(); index < 40; ++index) append_record(writer, index);
    writer.finish();
    DatasetWriter shards(folder / "s.lmdb", {.overwrite = true, .shard_bytes = 90'000});
    for (std::uint64_t index = 0; index < 40; ++index) append_record(shards, index);
    shards.finish();
    for (const char* name : {"a.lmdb", "s.lmdb"}) {
      const auto dataset = open_dataset(folder / name);
      HintsWriter hints(dataset);
      const std::vector<std::byte> hint(40, std::byte{7});
      for (std::uint64_t index = 0; index < 40; ++index) hints.append(hint);
      hints.finish();
    }
    for (const bool map : {true, false})
      for (const char* name : {"a.lmdb", "s.lmdb"}) {
        const auto dataset = open_dataset(folder / name, {.map = map});
        EXPECT_EQ(MappedKinds::records_of(*dataset), expected);
        EXPECT_TRUE(dataset->has_stored_hints());
        EXPECT_THAT(dataset->facts().warnings, IsEmpty());
      }
  }
  EXPECT_GT(fail.failed(), 100);
}

TEST(FileSystem, InterruptedReadsOfOtherKindsAreRepeated) {
  const MappedKinds kinds;
  for (const char* name : {"class/1.jpg", "class/2.jpg"}) {
    fs::create_directories((kinds / name).parent_path());
    write_file(kinds / name, "not looked at");
  }
  std::vector<const char*> names(std::begin(MappedKinds::names), std::end(MappedKinds::names));
  names.push_back("class");
  for (const char* name : names) {
    const std::string sound = MappedKinds::records_of(*open_dataset(kinds / name));
    const FailingCallsScope fail({.interrupted = true});
    for (int round = 0; round < 8; ++round) {
      const auto dataset = open_dataset(kinds / name, {.map = round % 2 == 0});
      EXPECT_EQ(MappedKinds::records_of(*dataset), sound) << name;
    }
    EXPECT_GT(fail.failed(), 0) << name;
  }
}

}  // namespace
}  // namespace millrace
