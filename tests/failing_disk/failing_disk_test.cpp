// SPDX-License-Identifier: Apache-2.0
//
// I/O errors of a disk under a mapped dataset, which the system reports by SIGBUS, and under one
// that is read by system calls.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "failing_disk/disk_files.h"
#include "support/fake_transform.h"
#include "support/stored_records.h"

namespace millrace {
namespace {

using testing::DiskFiles;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int rounds = 4;

std::atomic<int> own_signals;
std::atomic<void*> own_address;

/// The trainer's own handler: it counts signals, and replaces lost pages by zeros.
void count_signal(int, siginfo_t* info, void*) {
  ++own_signals;
  own_address = info->si_addr;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr) / DiskFiles::page_bytes;
  mmap(reinterpret_cast<void*>(at * DiskFiles::page_bytes), DiskFiles::page_bytes, PROT_READ,
       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

class FailingDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("MILLRACE_NUMA_VM") == nullptr)
      GTEST_SKIP() << "needs a disk that fails: bash tests/numa_vm.sh --disk FILES PROGRAM";
    ASSERT_GE(files_.lost_pages.size(), 3u);
    ASSERT_GT(files_.bad_records.size(), files_.lost_pages.size());
    own_signals = 0;
    struct sigaction mine {};
    mine.sa_sigaction = count_signal;
    mine.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGBUS, &mine, &before_), 0);
  }
  void TearDown() override { sigaction(SIGBUS, &before_, nullptr); }

  bool is_bad(std::uint64_t record) const { return files_.bad_records.contains(record); }

  void expect_reason(const std::string& reason, bool map) const {
    const std::string begin = files_.dataset().string() + " cannot be read at byte ";
    ASSERT_THAT(reason, StartsWith(begin));
    const std::uint64_t offset = std::stoull(reason.substr(begin.size()));
    EXPECT_TRUE(files_.lost_pages.contains(offset / DiskFiles::page_bytes)) << reason;
    EXPECT_THAT(reason, HasSubstr(map ? "an I/O error" : "Input/output error"));
  }

  /// Opens the dataset again and reads all records.
  void read_all(bool map, const std::function<void(std::uint64_t)>& after_each) const {
    const auto dataset = open_dataset(files_.dataset(), {.map = map});
    const auto reader = dataset->make_reader();
    ASSERT_EQ(dataset->size(), DiskFiles::records);
    for (std::uint64_t record = 0; record < DiskFiles::records; ++record) {
      if (is_bad(record)) {
        const Error error = testing::thrown_by([&] { (void)reader->read(record); });
        EXPECT_EQ(error.code(), ErrorCode::bad_record);
        EXPECT_EQ(error.record(), record);
        expect_reason(error.reason(), map);
      } else {
        testing::expect_record(reader->read(record), record);
        EXPECT_TRUE(reader->intact().is_ok()) << reader->intact().reason();
      }
      after_each(record);
    }
  }

  /// Causes a fault in the trainer's own map, which the earlier handler must handle.
  void expect_own_signal() const {
    const int file = open(files_.own().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    constexpr std::size_t bytes = DiskFiles::own_pages * DiskFiles::page_bytes;
    void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    ASSERT_NE(map, MAP_FAILED);
    madvise(map, bytes, MADV_RANDOM);
    const auto* page = static_cast<const volatile char*>(map);
    EXPECT_EQ(page[0], 'a');
    const int signals = own_signals;
    const auto* lost = page + DiskFiles::own_lost_page * DiskFiles::page_bytes + 3;
    EXPECT_EQ(*lost, '\0');
    EXPECT_EQ(own_signals, signals + 1);
    EXPECT_EQ(own_address, const_cast<const char*>(lost));
    munmap(map, bytes);
  }

  const DiskFiles files_ = DiskFiles::read("/disk");
  struct sigaction before_ {};
};

TEST_F(FailingDisk, UnderAMapMakesBadRecords) {
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    int own = 0;
    const int signals = own_signals;
    read_all(true, [&](std::uint64_t record) {
      if (record % 40 != 7) return;
      expect_own_signal();
      ++own;
    });
    EXPECT_EQ(own_signals, signals + own) << "of the dataset it heard nothing";
    expect_own_signal();
  }
}

TEST_F(FailingDisk, UnderCallsMakesBadRecords) {
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    read_all(false, [](std::uint64_t) {});
  }
  EXPECT_EQ(own_signals, 0);
}

TEST_F(FailingDisk, APipelineMarksThem) {
  const SampleSpec spec({{"first", DType::uint8, {}, false}});
  const auto transform = std::make_shared<testing::FunctionTransform>(
      spec, [](const Record& record, Random&, Sample& sample) {
        const std::vector<std::byte> bytes = testing::stored_bytes(record.index());
        if (!std::ranges::equal(record["image"], bytes)) return Status::bad("has other bytes");
        sample["first"].as<std::uint8_t>()[0] = 1;
        return Status::ok();
      });
  for (const bool map : {true, false}) {
    Pipeline pipeline(open_dataset(files_.dataset(), {.map = map}), transform,
                      std::make_shared<HostDevice>(),
                      {.batch_size = 8,
                       .epochs = 2,
                       .bad_records = BadRecords::mark,
                       .runtime = make_runtime({.workers = 2})});
    std::uint64_t samples = 0;
    while (const Batch batch = pipeline.next())
      for (std::size_t sample = 0; sample < batch.size(); ++sample, ++samples)
        EXPECT_EQ(batch.valid()[sample] == 0, is_bad(batch.indices()[sample]))
            << batch.indices()[sample];
    EXPECT_EQ(samples, 2 * DiskFiles::records);
    for (const BadRecord& bad : pipeline.report().bad_record_list) expect_reason(bad.reason, map);
  }
  EXPECT_EQ(own_signals, 0);
  expect_own_signal();
}

}  // namespace
}  // namespace millrace
