// SPDX-License-Identifier: Apache-2.0
//
// Tests of a dataset file that is truncated while a pipeline reads it: each sample then shows the
// record as it was written, or is marked. MILLRACE_ROUNDS sets the number of rounds.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "support/fake_transform.h"
#include "support/small_run.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using testing::error_of;
using testing::FunctionTransform;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::stored_bytes;
using testing::TemporaryFolder;

constexpr std::uint64_t records = 60;

std::uint64_t sum_of(std::span<const std::byte> bytes, std::uint64_t sum = 0) {
  for (const std::byte byte : bytes) sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3;
  return sum;
}

/// A run over a file that can be truncated at any time. Its samples are sums of the image's bytes.
class CutFile {
 public:
  CutFile() {
    testing::write_dataset(path(), records);
    sound_ = testing::file_contents(path());
    file_ = FileDescriptor(open(path().c_str(), O_RDWR));
    for (std::uint64_t index = 0; index < records; ++index)
      sums_[index] = sum_of(stored_bytes(index));
    options.batch_size = 8;
    options.bad_records = BadRecords::mark;
    options.epochs = 2;
    options.seed = 42;
    options.runtime = make_runtime({.workers = 2});
  }

  std::filesystem::path path() const { return folder_ / "a.lmdb"; }
  std::size_t size() const { return sound_.size(); }
  void cut(std::size_t bytes) const {
    EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
  }
  /// Pages that were lost before stay lost for those who have the file open.
  void restore() const {
    EXPECT_EQ(pwrite(file_.get(), sound_.data(), size(), 0), static_cast<ssize_t>(size()));
  }
  std::uint64_t sum(std::uint64_t record) const { return sums_[record]; }

  /// Called between the two halves of each record's bytes.
  std::function<void(const Record&)> halfway;
  PipelineOptions options;

  Pipeline pipeline(bool map = true) const {
    const auto make = [this](const Record& record, Random&, Sample& sample) {
      const std::span<const std::byte> image = record["image"];
      const std::size_t half = image.size() / 2;
      std::uint64_t sum = sum_of(image.first(half));
      if (halfway) halfway(record);
      sum = sum_of(image.subspan(half), sum);
      sample["sum"].as<std::uint64_t>()[0] = sum;
      if (record.integer("label") + 5 != static_cast<std::int64_t>(record.index()))
        throw std::runtime_error("the label is wrong");
      return Status::ok();
    };
    const SampleSpec spec({{"sum", DType::uint64, {}, false}});
    return Pipeline(open_dataset(path(), {.map = map}),
                    std::make_shared<FunctionTransform>(spec, make), std::make_shared<HostDevice>(),
                    options);
  }

 private:
  const TemporaryFolder folder_;
  std::string sound_;
  FileDescriptor file_;
  std::array<std::uint64_t, records> sums_{};
};

struct Outcome {
  std::uint64_t sound = 0;
  std::set<std::uint64_t> marked;
};

Outcome run(const CutFile& file, Pipeline& pipeline) {
  Outcome outcome;
  while (const Batch batch = pipeline.next())
    for (std::size_t sample = 0; sample < batch.size(); ++sample) {
      const std::uint64_t sum = batch["sum"].as<std::uint64_t>()[sample];
      const std::uint64_t record = batch.indices()[sample];
      if (batch.valid()[sample] != 0) {
        ++outcome.sound;
        EXPECT_EQ(sum, file.sum(record)) << "record " << record;
      } else {
        outcome.marked.insert(record);
        EXPECT_EQ(sum, 0u);
      }
    }
  for (const BadRecord& bad : pipeline.report().bad_record_list)
    EXPECT_THAT(bad.reason, StartsWith(file.path().string() + " cannot be read at byte "));
  return outcome;
}

TEST(PipelineLostBytes, ASampleUnderWayIsBad) {
  for (const bool map : {true, false})
    for (const bool fails : {false, true}) {
      CutFile file;
      constexpr std::uint64_t cut = 40;
      std::atomic<bool> done{false};
      file.halfway = [&](const Record& record) {
        if (record.index() != cut || done.exchange(true)) return;
        file.cut(4096);
        if (!map) return;
        EXPECT_EQ(sum_of(record["image"]), sum_of(std::vector<std::byte>(record["image"].size())));
        file.restore();
        if (fails) throw Error(ErrorCode::transform, "what is made of zeros may be anything");
      };
      file.options.order = Order::sequential();
      file.options.runtime = make_runtime({.workers = 1});
      Pipeline pipeline = file.pipeline(map);
      const Outcome outcome = run(file, pipeline);
      EXPECT_TRUE(done);
      EXPECT_TRUE(outcome.marked.contains(cut));
      EXPECT_GE(outcome.sound, map ? cut : cut + 1) << "what was read into memory is not lost";
    }
}

TEST(PipelineLostBytes, FailNamesFileAndOffsetOnce) {
  CutFile file;
  file.options.bad_records = BadRecords::fail;
  file.halfway = [&](const Record& record) {
    if (record.index() == 40) file.cut(4096);
  };
  Pipeline pipeline = file.pipeline();
  const Error error = error_of([&] {
    while (pipeline.next()) continue;
  });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  const std::string what = error.what();
  EXPECT_THAT(what, HasSubstr(" is bad: " + file.path().string() + " cannot be read at byte "));
  EXPECT_EQ(what.find(file.path().string()), what.rfind(file.path().string())) << what;
}

TEST(PipelineLostBytes, AtAnyMomentEndInMarkedSamples) {
  const char* wanted = std::getenv("MILLRACE_ROUNDS");
  const std::uint64_t rounds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 40;
  const CutFile file;
  std::uint64_t with_lost = 0, with_sound = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Random random(3, round);
    const bool map = round % 8 != 0;
    Pipeline pipeline = file.pipeline(map);
    const auto delay = std::chrono::microseconds(random.below(2500));
    const bool restored = random.below(2) == 0;
    // A cut within a page leaves zeros, which cannot be noticed once the file is restored.
    constexpr std::size_t page = 4096;
    std::size_t bytes = random.below(file.size());
    if (restored || !map) bytes = bytes / page * page;
    const auto short_for = std::chrono::microseconds(random.below(300));
    std::jthread cutter([&] {
      std::this_thread::sleep_for(delay);
      file.cut(bytes);
      if (!restored) return;
      std::this_thread::sleep_for(short_for);
      file.restore();
    });
    const Outcome outcome = run(file, pipeline);
    cutter.join();
    with_lost += outcome.marked.empty() ? 0U : 1U;
    with_sound += outcome.sound > 0 ? 1U : 0U;
    file.restore();
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  std::cout << rounds << " rounds, " << with_lost << " with lost records, " << with_sound
            << " with sound ones\n";
  EXPECT_GT(with_lost, rounds / 10) << "else the cuts hit nothing";
  EXPECT_GT(with_sound, rounds / 10);
}

}  // namespace
}  // namespace millrace
