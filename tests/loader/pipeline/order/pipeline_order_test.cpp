// SPDX-License-Identifier: Apache-2.0
//
// Tests of which samples come when: order, epochs, last batches, refused options.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::contents;
using testing::error_of;
using testing::expect_positions;
using ::testing::HasSubstr;
using testing::SmallRun;
using testing::take;
using testing::uneven_run;

TEST(PipelineOrder, IsTheSameForAnyLayoutOfTheWork) {
  const auto reference = [] {
    SmallRun run(53);
    run.options.epochs = 2;
    run.workers(1);
    Pipeline pipeline = run.pipeline();
    return take(pipeline);
  }();
  ASSERT_EQ(reference.size(), 14U);
  for (const unsigned workers : {1U, 2U, 4U}) {
    const auto runtime = make_runtime({.workers = workers});
    for (const bool copies : {false, true})
      for (const std::size_t prefetch : {1U, 2U, 6U})
        for (const std::size_t micro_batches : {1U, 4U}) {
          SCOPED_TRACE(::testing::Message()
                       << workers << " workers, prefetch " << prefetch << ", micro_batches "
                       << micro_batches << ", copies " << copies);
          SmallRun run = uneven_run(53, copies);
          run.options.epochs = 2;
          run.options.runtime = runtime;
          run.options.slots.prefetch = prefetch;
          run.options.slots.micro_batches = micro_batches;
          Pipeline pipeline = run.pipeline();
          ASSERT_EQ(take(pipeline), reference);
        }
  }
}

TEST(PipelineOrder, FollowsFromSeedAndPosition) {
  SmallRun run = uneven_run(53);
  run.options.epochs = 3;
  Pipeline pipeline = run.pipeline();
  const auto batches = take(pipeline);
  ASSERT_EQ(batches.size(), 21U);
  for (std::size_t number = 0; number < batches.size(); ++number) {
    EXPECT_EQ(batches[number].number, number);
    EXPECT_EQ(batches[number].epoch, number / 7);
    EXPECT_EQ(batches[number].last_in_epoch, number % 7 == 6);
    const std::uint64_t first = number / 7 * 53 + number % 7 * 8;
    expect_positions(batches[number], run.sampler(), run.options.seed, first);
    EXPECT_EQ(batches[number].after.position, first + batches[number].indices.size());
  }
}

TEST(PipelineOrder, SeedsAndEpochsDiffer) {
  SmallRun run(40);
  run.options.epochs = 2;
  Pipeline pipeline = run.pipeline();
  const auto batches = take(pipeline);
  run.options.seed = 43;
  Pipeline other = run.pipeline();
  const auto others = take(other);
  ASSERT_EQ(batches.size(), 10U);
  ASSERT_EQ(others.size(), 10U);
  EXPECT_NE(batches[0].indices, batches[5].indices);
  EXPECT_NE(batches[0].indices, others[0].indices);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    std::set<std::uint64_t> seen;
    for (std::size_t batch = epoch * 5; batch < epoch * 5 + 5; ++batch)
      seen.insert(batches[batch].indices.begin(), batches[batch].indices.end());
    EXPECT_EQ(seen.size(), 40U);
  }
  // A record that comes again gets other random numbers.
  std::map<std::uint64_t, std::uint64_t> draws;
  for (std::size_t batch = 0; batch < 5; ++batch)
    for (std::size_t sample = 0; sample < 8; ++sample)
      draws[batches[batch].indices[sample]] = batches[batch].draws[sample];
  for (std::size_t batch = 5; batch < 10; ++batch)
    for (std::size_t sample = 0; sample < 8; ++sample)
      EXPECT_NE(draws[batches[batch].indices[sample]], batches[batch].draws[sample]);
}

/// A dataset in a file, without records.
class EmptyFile final : public Dataset {
 public:
  std::uint64_t size() const override { return 0; }
  std::unique_ptr<DatasetReader> make_reader() const override { return nullptr; }
  std::string name() const override { return "nothing"; }
  DatasetFacts facts() const override {
    DatasetFacts facts;
    facts.files = {"nothing.lmdb"};
    return facts;
  }
};

TEST(PipelineOrder, AnEmptyDatasetIsRefusedByItsName) {
  const SmallRun run(20);
  const Error error = testing::error_of([&] {
    (void)Pipeline(std::make_shared<EmptyFile>(), run.transform, run.device, run.options);
  });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("nothing.lmdb: the dataset is empty"));
}

TEST(PipelineOrder, UnshuffledIsTheDatasetsOrder) {
  SmallRun run(20);
  run.options.order = Order::sequential();
  run.options.epochs = 2;
  Pipeline pipeline = run.pipeline();
  std::vector<std::uint64_t> seen;
  for (const BatchContents& batch : take(pipeline))
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
  ASSERT_EQ(seen.size(), 40U);
  for (std::size_t n = 0; n < 40; ++n) EXPECT_EQ(seen[n], n % 20);
}

TEST(PipelineOrder, StaysAtTheEnd) {
  for (const bool copies : {false, true}) {
    SmallRun run(20, copies);
    Pipeline pipeline = run.pipeline();
    HostStream stream;
    EXPECT_EQ(take(pipeline).size(), 3U);
    for (int again = 0; again < 3; ++again) {
      EXPECT_FALSE(pipeline.next());
      EXPECT_FALSE(pipeline.next(stream));
      EXPECT_FALSE(pipeline.next(stream, std::chrono::seconds(0)));
      EXPECT_FALSE(pipeline.next_in_micro_batches(stream));
    }
    EXPECT_EQ(pipeline.state().position, 20U);
  }
}

TEST(PipelineOrder, TheEndIsSeenWhileTheLastBatchesLive) {
  SmallRun run(16);
  run.options.slots.prefetch = 2;
  Pipeline pipeline = run.pipeline();
  const Batch first = pipeline.next();
  const Batch second = pipeline.next();
  ASSERT_TRUE(second);
  EXPECT_FALSE(pipeline.next()) << "all slots are held, but nothing is to come either";
}

TEST(PipelineOrder, GoesOnForEverWithoutEpochs) {
  SmallRun run(10);
  run.options.epochs = 0;
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline, 101).back().epoch, 50U);
}

TEST(PipelineLastBatch, Drop) {
  SmallRun run(21);
  run.options.last_batch = LastBatch::drop;
  run.options.epochs = 2;
  Pipeline pipeline = run.pipeline();
  const auto batches = take(pipeline);
  ASSERT_EQ(batches.size(), 4U);
  for (const BatchContents& batch : batches) EXPECT_EQ(batch.indices.size(), 8U);
  EXPECT_TRUE(batches[1].last_in_epoch);
  EXPECT_EQ(batches[1].after.position, 21U) << "the epoch's dropped samples count";
  expect_positions(batches[2], run.sampler(), 42, 21);
  EXPECT_EQ(pipeline.state().position, 42U);
}

TEST(PipelineLastBatch, DropOfAllIsRefused) {
  SmallRun run(7);
  run.options.last_batch = LastBatch::drop;
  const Error error = error_of([&] { (void)run.pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("last_batch"));
  run = SmallRun(20);
  run.options.last_batch = LastBatch::drop;
  run.options.ranks.this_process.world = 3;
  EXPECT_EQ(error_of([&] { (void)run.pipeline(); }).code(), ErrorCode::invalid_argument);
}

TEST(PipelineLastBatch, PartialOfADatasetBelowABatch) {
  SmallRun run(5);
  run.options.epochs = 3;
  Pipeline pipeline = run.pipeline();
  const auto batches = take(pipeline);
  ASSERT_EQ(batches.size(), 3U);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(batches[epoch].indices.size(), 5U);
    EXPECT_TRUE(batches[epoch].last_in_epoch);
    expect_positions(batches[epoch], run.sampler(), 42, epoch * 5);
  }
}

TEST(PipelineLastBatch, PadRepeatsTheEpochsFirstSamplesAsNotValid) {
  // With 3 records the padding wraps around more than once, with 20 it fills half a batch, and 16
  // need no padding.
  for (const std::uint64_t records : {1U, 3U, 16U, 20U})
    for (const bool copies : {false, true}) {
      SCOPED_TRACE(::testing::Message() << records << " records, copies " << copies);
      SmallRun run(records, copies);
      run.options.last_batch = LastBatch::pad;
      run.options.epochs = 2;
      Pipeline pipeline = run.pipeline();
      const auto batches = take(pipeline);
      const std::uint64_t per_epoch = (records + 7) / 8;
      ASSERT_EQ(batches.size(), 2 * per_epoch);
      for (std::uint64_t number = 0; number < batches.size(); ++number) {
        const BatchContents& batch = batches[number];
        ASSERT_EQ(batch.indices.size(), 8U);
        std::size_t real = 0;
        for (std::size_t sample = 0; sample < 8; ++sample) {
          const std::uint64_t offset = number % per_epoch * 8 + sample;
          const std::uint64_t position = number / per_epoch * records + offset % records;
          EXPECT_EQ(batch.valid[sample], offset < records ? 1 : 0);
          EXPECT_TRUE(testing::is_stamped(batch, sample, run.sampler()(position),
                                          Random(42, position).bits64()));
          real += offset < records ? 1 : 0;
        }
        EXPECT_EQ(batch.global_size, real);
      }
      EXPECT_EQ(batches[per_epoch - 1].after.position, records);
    }
}

TEST(PipelineOptions, NamesTheOptionThatIsWrong) {
  const auto refusal = [](auto change, bool copies = false) {
    SmallRun run(29, copies);
    change(run.options);
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_THAT(refusal([](PipelineOptions& options) { options.batch_size = 0; }),
              HasSubstr("batch_size"));
  EXPECT_THAT(refusal([](PipelineOptions& options) { options.slots.prefetch = 0; }),
              HasSubstr("prefetch"));
  EXPECT_THAT(refusal([](PipelineOptions& options) { options.slots.device_slots = 0; }, true),
              HasSubstr("device_slots"));
  EXPECT_THAT(refusal([](PipelineOptions& options) { options.slots.micro_batches = 0; }),
              HasSubstr("micro_batches"));
  EXPECT_THAT(refusal([](PipelineOptions& options) { options.ranks.this_process.world = 0; }),
              HasSubstr("world"));
  EXPECT_THAT(refusal([](PipelineOptions& options) { options.ranks.this_process.rank = 1; }),
              HasSubstr("rank"));
}

TEST(PipelineOptions, NeedsDatasetTransformDeviceAndRecords) {
  const SmallRun run(29);
  EXPECT_EQ(error_of([&] { Pipeline(nullptr, run.transform, run.device); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { Pipeline(run.dataset, nullptr, run.device); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { Pipeline(run.dataset, run.transform, nullptr); }).code(),
            ErrorCode::invalid_argument);
  const Error error = error_of([&] { (void)SmallRun(0).pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("empty"));
}

// A read waits until the dataset has been told of its record. So prefetch() must not depend on
// reads.
TEST(PipelinePrefetch, TellsTheDatasetOfEachRecordOnceThoughItIsNotRead) {
  SmallRun run(100);
  std::mutex mutex;
  std::multiset<std::uint64_t> told;
  std::atomic<bool> untold{false};
  run.dataset->on_prefetch = [&](std::span<const std::uint64_t> indices) {
    std::lock_guard lock(mutex);
    told.insert(indices.begin(), indices.end());
  };
  run.dataset->on_read = [&](std::uint64_t index) {
    const auto is_told = [&] {
      std::lock_guard lock(mutex);
      return told.contains(index);
    };
    if (!testing::eventually(is_told)) untold = true;
  };
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline).size(), 13U);
  EXPECT_FALSE(untold) << "a record was read that the dataset had not been told of";
  EXPECT_EQ(told.size(), 100U);
}

TEST(Pipeline, CanBeMoved) {
  SmallRun run(40);
  Pipeline first = run.pipeline();
  EXPECT_EQ(first.next().number(), 0U);
  Pipeline second = std::move(first);
  EXPECT_EQ(second.next().number(), 1U);
  SmallRun other(16);
  second = other.pipeline();
  EXPECT_EQ(take(second).size(), 2U);
}

TEST(Pipeline, GivesTwoThreadsBatchesOfTheirOwn) {
  SmallRun run(800);
  Pipeline pipeline = run.pipeline();
  std::array<std::vector<BatchContents>, 3> got;
  {
    std::vector<std::jthread> threads;
    for (auto& batches : got)
      threads.emplace_back([&pipeline, &batches] {
        HostStream stream;
        while (Batch batch = pipeline.next(stream, testing::patience))
          batches.push_back(contents(batch));
      });
  }
  std::vector<std::uint64_t> numbers;
  for (const auto& batches : got) {
    for (const BatchContents& batch : batches) {
      expect_positions(batch, run.sampler(), 42, batch.number * 8);
      numbers.push_back(batch.number);
    }
    EXPECT_TRUE(std::is_sorted(batches.begin(), batches.end(),
                               [](const auto& a, const auto& b) { return a.number < b.number; }));
  }
  std::sort(numbers.begin(), numbers.end());
  ASSERT_EQ(numbers.size(), 100U);
  for (std::size_t n = 0; n < 100; ++n) EXPECT_EQ(numbers[n], n);
}

}  // namespace
}  // namespace millrace
