// SPDX-License-Identifier: Apache-2.0
//
// What a transform notes of records comes back with them, in pipelines that share it.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::FunctionTransform;
using testing::MemoryDataset;

/// Counts what its transform finds noted: each sample notes its record's number once more.
struct NotingRun {
  explicit NotingRun(std::uint64_t records, std::optional<std::size_t> index_bytes = {})
      : dataset(std::make_shared<MemoryDataset>(records)) {
    options.batch_size = 8;
    options.epochs = 3;
    options.order = Order::sequential();  // so no record comes again while it is in the making
    options.index_bytes = index_bytes;
    options.runtime = make_runtime({.workers = 2});
  }

  /// How many samples found how many numbers noted, and what is noted in the end.
  std::map<std::size_t, std::size_t> counts;
  std::size_t noted_bytes = 0;

  void run() {
    std::array<std::atomic<std::size_t>, 8> found{};
    auto transform = std::make_shared<FunctionTransform>(
        SampleSpec({{"label", DType::int64, {}}}),
        [&](const Record& record, Random&, Sample& sample) {
          sample["label"].as<std::int64_t>()[0] = 0;
          const std::span<const std::byte> note = sample.note();
          std::vector<std::uint64_t> numbers(note.size() / sizeof(std::uint64_t));
          std::ranges::copy(note, std::as_writable_bytes(std::span(numbers)).begin());
          for (const std::uint64_t number : numbers) EXPECT_EQ(number, record.index());
          ++found.at(sample.has_notes() ? numbers.size() : 7);
          numbers.push_back(record.index());
          sample.keep_note(std::as_bytes(std::span(numbers)));
          return Status::ok();
        });
    Pipeline pipeline(dataset, transform, std::make_shared<HostDevice>(), options);
    while (const Batch batch = pipeline.next()) continue;
    noted_bytes = pipeline.report().memory.index_bytes;
    counts.clear();
    for (std::size_t n = 0; n < found.size(); ++n)
      if (found.at(n) > 0) counts[n] = found.at(n);
  }

  std::shared_ptr<MemoryDataset> dataset;
  PipelineOptions options;
};

using Counts = std::map<std::size_t, std::size_t>;

TEST(PipelineNotes, ComeBackInTheNextEpoch) {
  NotingRun run(100);
  run.run();
  EXPECT_EQ(run.counts, (Counts{{0, 100}, {1, 100}, {2, 100}}));
  EXPECT_GE(run.noted_bytes, 100 * 3 * sizeof(std::uint64_t));
  EXPECT_LE(run.noted_bytes, 100 * 256U);
}

TEST(PipelineNotes, AreKeptForTheNextPipelineOverTheDataset) {
  NotingRun run(50);
  run.options.epochs = 1;
  run.run();
  run.run();
  EXPECT_EQ(run.counts, (Counts{{1, 50}}));
  run.dataset = std::make_shared<MemoryDataset>(50);
  run.run();
  EXPECT_EQ(run.counts, (Counts{{0, 50}})) << "another dataset";
  run.options.runtime = make_runtime({.workers = 1});
  run.run();
  EXPECT_EQ(run.counts, (Counts{{0, 50}})) << "another runtime";
}

TEST(PipelineNotes, TakeNoMoreThanTheyMay) {
  NotingRun none(50, 0);
  none.run();
  EXPECT_EQ(none.counts, (Counts{{7, 150}})) << "no notes are kept";
  EXPECT_EQ(none.noted_bytes, 0U);
  NotingRun few(100, 2000);
  few.run();
  EXPECT_GT(few.counts[0], 200U);
  EXPECT_GT(few.counts[1], 5U);
  EXPECT_LE(few.noted_bytes, 2000U);
  EXPECT_GT(few.noted_bytes, 1000U);
}

}  // namespace
}  // namespace millrace
