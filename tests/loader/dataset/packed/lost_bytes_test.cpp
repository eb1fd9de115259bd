// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a dataset file that cannot be read: after an I/O error, or because the file was made
// shorter while it is open. Each test uses a mapped file and one that is read with pread.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "support/stored_records.h"
#include "support/temporary_folder.h"
#include "support/waiting.h"

namespace {

/// Offset at which a read of any file fails with an I/O error; -1 = none.
std::atomic<off_t> bad_offset{-1};
/// Called when a map gets its advice, which is after it is made and before its pages are read.
std::function<void()> on_advice;

}  // namespace

// The linker prefers these definitions to those of the C library.
extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  const off_t bad = bad_offset;
  if (bad >= offset && bad < offset + static_cast<off_t>(bytes)) {
    if (bad == offset) {
      errno = EIO;
      return -1;
    }
    bytes = static_cast<size_t>(bad - offset);  // the bytes before it can be read
  }
  return syscall(SYS_pread64, file, to, bytes, offset);
}
extern "C" int madvise(void* at, size_t bytes, int advice) noexcept {
  if (on_advice && advice == MADV_RANDOM) on_advice();
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace testing;

constexpr std::uint64_t records_of_file = 60;

/// The parameter is whether the file is mapped.
class LostBytes : public ::testing::TestWithParam<bool> {
 protected:
  LostBytes() {
    write_dataset(path_, records_of_file);
    sound_ = file_contents(path_);
    while (stored_bytes(cut_).size() < 3 * page_bytes) ++cut_;
    const std::vector<std::byte> image = stored_bytes(cut_);
    at_ = sound_.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
    EXPECT_NE(at_, std::string::npos);
  }
  ~LostBytes() override {
    bad_offset = -1;
    on_advice = {};
  }

  std::shared_ptr<const Dataset> opened(bool checked = true) const {
    return open_dataset(path_, {.verify_checksums = checked, .map = GetParam()});
  }
  std::string cannot_read() const { return path_.string() + " cannot be read at byte "; }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "a.lmdb";
  std::string sound_;
  /// A record of several pages, and the offset of its image in the file.
  std::uint64_t cut_ = 30;
  std::size_t at_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Of, LostBytes, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AMap" : "AFile"; });

TEST_P(LostBytes, AreBadRecordsThatNameFileAndOffset) {
  for (const bool checked : {true, false}) {
    write_file(path_, sound_);
    const auto dataset = opened(checked);
    const auto reader = dataset->make_reader();
    fs::resize_file(path_, at_ + page_bytes + 100);
    std::set<std::uint64_t> bad;
    std::vector<std::uint64_t> all;
    for (std::uint64_t index = 0; index < records_of_file; ++index) {
      all.push_back(index);
      std::string reason;
      try {
        const Record record = reader->read(index);
        reason = reader->intact().reason();
        if (reason.empty()) expect_record(record, index);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_record);
        EXPECT_EQ(error.record(), index);
        EXPECT_EQ(error.what(), "record " + std::to_string(index) + ": " + error.reason());
        reason = error.reason();
      }
      const std::string key = dataset->key(index);
      EXPECT_TRUE(key == stored_path(index) || key == "record " + std::to_string(index)) << key;
      if (reason.empty()) continue;
      bad.insert(index);
      EXPECT_THAT(reason, StartsWith(cannot_read()));
      EXPECT_THAT(reason, HasSubstr("made shorter"));
    }
    EXPECT_TRUE(bad.contains(cut_));
    EXPECT_GT(bad.size(), records_of_file / 2) << "the tree of pages ends behind the records";
    dataset->prefetch(all);
  }
}

TEST_P(LostBytes, SpoilNoOtherRecords) {
  const auto dataset = opened();
  const auto reader = dataset->make_reader();
  const std::size_t lost = (at_ + page_bytes) / page_bytes * page_bytes;
  if (GetParam()) {
    // Only this page is read while the file is short.
    const std::span<const std::byte> image = reader->read(cut_)["image"];
    fs::resize_file(path_, lost);
    EXPECT_EQ(int(*static_cast<const volatile std::byte*>(&image[lost - at_])), 0);
    std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary) << sound_;
  } else {
    bad_offset = static_cast<off_t>(lost);
  }
  for (std::uint64_t index = 0; index < records_of_file; ++index) {
    if (index == cut_) {
      const Error error = thrown_by([&] { (void)reader->read(index); });
      EXPECT_EQ(error.code(), ErrorCode::bad_record);
      EXPECT_THAT(error.reason(), StartsWith(cannot_read() + std::to_string(lost) + ": "));
    } else {
      expect_record(reader->read(index), index);
      EXPECT_TRUE(reader->intact().is_ok());
    }
  }
  bad_offset = -1;
  if (GetParam())
    EXPECT_THROW((void)reader->read(cut_), Error) << "as long as it is open";
  else
    expect_record(reader->read(cut_), cut_);
}

TEST_P(LostBytes, AreAskedForBehindTheReading) {
  for (const std::size_t kept : {std::size_t{0}, page_bytes, page_bytes + 100}) {
    SCOPED_TRACE(kept);
    write_file(path_, sound_);
    const auto dataset = opened();
    const auto reader = dataset->make_reader();
    const auto bystander = dataset->make_reader();
    const Record record = reader->read(cut_);
    const auto idle = dataset->make_reader();
    (void)bystander->read(1);
    EXPECT_TRUE(reader->intact().is_ok());
    fs::resize_file(path_, at_ / page_bytes * page_bytes + kept);
    std::size_t zeros = 0;
    for (const std::byte byte : record["image"]) zeros += byte == std::byte{0} ? 1 : 0;
    if (GetParam()) {
      EXPECT_GT(zeros, page_bytes);
      EXPECT_THAT(reader->intact().reason(), StartsWith(cannot_read()));
    } else {
      EXPECT_TRUE(reader->intact().is_ok());
      expect_record(record, cut_);  // the record lies in the reader's own memory
    }
    EXPECT_TRUE(bystander->intact().is_ok());
    EXPECT_TRUE(idle->intact().is_ok()) << "it has read nothing";
  }
}

// Behind the end of a file, its last page reads as zeros without a fault.
TEST_P(LostBytes, InTheLastPageAreFoundWithoutAFault) {
  const auto dataset = opened();
  const auto reader = dataset->make_reader();
  const Record record = reader->read(cut_);
  const std::size_t end = at_ + record["image"].size();
  fs::resize_file(path_, end - 1);
  EXPECT_EQ(reader->intact().is_ok(), !GetParam());
  EXPECT_THAT(thrown_by([&] { (void)reader->read(cut_); }).reason(), StartsWith(cannot_read()));
}

TEST_P(LostBytes, OfAShardNameThatShard) {
  const fs::path list = folder_ / "all.lmdb";
  {
    WriterOptions options;
    options.shards = 2;
    options.source_items = records_of_file;
    DatasetWriter writer(list, options);
    for (std::uint64_t index = 0; index < records_of_file; ++index) append_record(writer, index);
    writer.finish();
  }
  const auto dataset = open_dataset(list, {.map = GetParam()});
  const auto reader = dataset->make_reader();
  EXPECT_TRUE(reader->intact().is_ok()) << "nothing was read";
  expect_record(reader->read(50), 50);
  const fs::path second = folder_ / "all-00001-of-00002.lmdb";
  fs::resize_file(second, 3 * page_bytes);
  EXPECT_EQ(reader->intact().is_ok(), !GetParam());
  const Error error = thrown_by([&] { (void)reader->read(50); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_EQ(error.record(), 50u);
  EXPECT_THAT(error.reason(), StartsWith(second.string() + " cannot be read at byte "));
  expect_record(reader->read(5), 5);
  EXPECT_TRUE(reader->intact().is_ok());
}

TEST_P(LostBytes, OfAMetaPageAreNoDamage) {
  for (const std::size_t offset : {std::size_t{0}, std::size_t{100}, page_bytes}) {
    bad_offset = static_cast<off_t>(offset);
    const Error error = thrown_by([&] { (void)opened(); });
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_EQ(error.what(), cannot_read() + std::to_string(offset) + ": Input/output error");
  }
}

TEST_P(LostBytes, OfATreePageAreNoDamageWhereItIsOpened) {
  if (GetParam()) {
    on_advice = [&] { fs::resize_file(path_, 2 * page_bytes); };
  } else {
    // The newest description is in the last leaf that has one.
    bad_offset = static_cast<off_t>(sound_.rfind("\"fingerprint\""));
  }
  const Error error = thrown_by([&] { (void)opened(); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), StartsWith(cannot_read()));
}

using LostBytesOfAFile = LostBytes;
INSTANTIATE_TEST_SUITE_P(, LostBytesOfAFile, ::testing::Values(false));

TEST_P(LostBytesOfAFile, NeedNoMap) {
  const auto handler = [] {
    struct sigaction now {};
    sigaction(SIGBUS, nullptr, &now);
    return now.sa_handler;
  };
  const auto before = handler();  // sanitizers have one
  const auto dataset = opened();
  EXPECT_TRUE(mappings_of(path_).empty());
  EXPECT_EQ(handler(), before);
  const auto mapped = open_dataset(path_);
  EXPECT_EQ(mappings_of(path_).size(), 1u);
  EXPECT_EQ(opened()->facts().fingerprint, mapped->facts().fingerprint);
  const auto reader = dataset->make_reader();
  const auto second = dataset->make_reader();
  for (std::uint64_t step = 0; step < 2 * records_of_file; ++step) {
    const Record record = reader->read(step * 23 % records_of_file);
    expect_record(second->read(step % records_of_file), step % records_of_file);
    expect_record(record, step * 23 % records_of_file);
    EXPECT_EQ(dataset->key(step % records_of_file), stored_path(step % records_of_file));
    EXPECT_EQ(dataset->stored_record(step % records_of_file)->checksum,
              mapped->stored_record(step % records_of_file)->checksum);
  }
}

}  // namespace
}  // namespace millrace
