// SPDX-License-Identifier: Apache-2.0
//
// Tests of runs over a stream: which records the batches have, and where epochs end.
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "loader/pipeline/stream/fake_stream.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::contents;
using ::testing::ElementsAre;
using testing::epoch_positions;
using testing::error_of;
using ::testing::HasSubstr;
using testing::is_stamped;
using testing::MemoryStream;
using testing::StreamRun;
using testing::take;

std::vector<std::uint64_t> records_of(const std::vector<BatchContents>& batches,
                                      std::uint64_t epoch = 0) {
  std::vector<std::uint64_t> records;
  for (const BatchContents& batch : batches)
    if (batch.epoch == epoch)
      for (std::size_t sample = 0; sample < batch.indices.size(); ++sample)
        if (batch.valid[sample] != 0) records.push_back(batch.indices[sample]);
  return records;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> records) {
  std::ranges::sort(records);
  return records;
}

std::vector<std::uint64_t> first_numbers(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

TEST(PipelineStream, HasTheSameBatchesForAnyWorkersDepthAndDevice) {
  std::vector<BatchContents> reference;
  for (const unsigned workers : {1U, 2U, 5U}) {
    StreamRun run(203);
    run.workers(workers);
    run.options.slots.prefetch = 1 + workers;
    run.device = std::make_shared<HostDevice>(HostDeviceOptions{workers == 5});
    run.options.slots.micro_batches = workers == 2 ? 3 : 1;
    run.transform->on_begin = [](const Record& record) {
      std::this_thread::sleep_for(std::chrono::microseconds(record.index() * 7919 % 4 * 100));
    };
    Pipeline pipeline = run.pipeline();
    const std::vector<BatchContents> batches = take(pipeline);
    if (reference.empty()) reference = batches;
    EXPECT_EQ(batches, reference) << workers << " workers";
  }
  ASSERT_EQ(reference.size(), 26U);
  EXPECT_EQ(sorted(records_of(reference)), first_numbers(203));
  std::uint64_t position = 0;
  for (const BatchContents& batch : reference)
    for (std::size_t sample = 0; sample < batch.indices.size(); ++sample, ++position)
      EXPECT_TRUE(is_stamped(batch, sample, batch.indices[sample], Random(42, position).bits64()))
          << "sample " << sample << " of batch " << batch.number;
}

TEST(PipelineStream, ShufflesWithinWindowsByTheSeed) {
  StreamRun run(32 * 60);
  Pipeline pipeline = run.pipeline();
  const std::vector<std::uint64_t> records = records_of(take(pipeline));
  double distance = 0;
  for (std::size_t place = 0; place < records.size(); ++place) {
    EXPECT_EQ(records[place] / 32, place / 32) << "a record leaves its window";
    distance += std::abs(static_cast<double>(records[place]) - static_cast<double>(place));
  }
  // The law in <millrace/one_pass_dataset.h>: (W^2 - 1) / 3 W. The standard error is 0.2.
  EXPECT_NEAR(distance / static_cast<double>(records.size()), 32.0 / 3, 1);
  EXPECT_NE(std::vector(records.begin(), records.begin() + 32), first_numbers(32));
  std::vector<std::uint64_t> second(records.begin() + 32, records.begin() + 64);
  for (std::uint64_t& record : second) record -= 32;
  EXPECT_NE(std::vector(records.begin(), records.begin() + 32), second)
      << "each window has its own order";

  StreamRun other(32 * 60);
  other.options.seed = 43;
  Pipeline of_other = other.pipeline();
  EXPECT_NE(records_of(take(of_other)), records);
}

TEST(PipelineStream, SequentialKeepsTheOrder) {
  StreamRun run(75);
  run.options.order = Order::sequential();
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(records_of(take(pipeline)), first_numbers(75));
}

TEST(PipelineStream, LastBatchFollowsThePolicy) {
  StreamRun run(43);
  run.options.order = Order::sequential();
  Pipeline partial = run.pipeline();
  std::vector<BatchContents> batches = take(partial);
  ASSERT_EQ(batches.size(), 6U);
  EXPECT_THAT(batches[5].indices, ElementsAre(40, 41, 42));
  EXPECT_TRUE(batches[5].last_in_epoch);
  EXPECT_FALSE(batches[4].last_in_epoch);

  run.stream = std::make_shared<MemoryStream>(43);
  run.options.last_batch = LastBatch::drop;
  Pipeline drop = run.pipeline();
  batches = take(drop);
  ASSERT_EQ(batches.size(), 5U);
  EXPECT_TRUE(batches[4].last_in_epoch) << "known although the records behind it are dropped";
  EXPECT_EQ(batches[4].after.position, epoch_positions);

  run.stream = std::make_shared<MemoryStream>(43);
  run.options.last_batch = LastBatch::pad;
  Pipeline pad = run.pipeline();
  batches = take(pad);
  ASSERT_EQ(batches.size(), 6U);
  EXPECT_THAT(batches[5].indices, ElementsAre(40, 41, 42, 40, 41, 42, 40, 41));
  EXPECT_THAT(batches[5].valid, ElementsAre(1, 1, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(batches[5].global_size, 3U);
}

TEST(PipelineStream, EndsWhereTheStreamEnds) {
  for (const std::uint64_t records : {1U, 7U, 8U, 9U, 31U, 32U, 33U, 64U}) {
    StreamRun run(records);
    Pipeline pipeline = run.pipeline();
    const std::vector<BatchContents> batches = take(pipeline);
    EXPECT_EQ(sorted(records_of(batches)), first_numbers(records));
    ASSERT_EQ(batches.size(), (records + 7) / 8) << records;
    EXPECT_TRUE(batches.back().last_in_epoch);
    EXPECT_FALSE(pipeline.next());
    EXPECT_EQ(pipeline.state().position, epoch_positions);
    EXPECT_EQ(pipeline.batches_per_epoch(), 0U);
    EXPECT_EQ(pipeline.total_batches(), std::nullopt);
  }
}

TEST(PipelineStream, WindowMayBeLargerThanTheStreamOrSmallerThanABatch) {
  for (const std::uint64_t window : {1U, 3U, 1000U}) {
    StreamRun run(100);
    run.windows.window_records = window;
    Pipeline pipeline = run.pipeline();
    const std::vector<std::uint64_t> records = records_of(take(pipeline));
    EXPECT_EQ(sorted(records), first_numbers(100));
    EXPECT_EQ(records == first_numbers(100), window == 1);
  }
}

TEST(PipelineStream, RestartsForEachEpoch) {
  for (const bool breaks : {false, true}) {
    StreamRun run(21);
    run.stream->restarts = true;
    run.options.epochs = 5;
    run.options.slots.epoch_break = breaks;
    run.options.slots.prefetch = 6;  // more than the batches of an epoch
    Pipeline pipeline = run.pipeline();
    const std::vector<BatchContents> batches = take(pipeline);
    ASSERT_EQ(batches.size(), 15U);
    std::set<std::vector<std::uint64_t>> orders;
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      EXPECT_EQ(sorted(records_of(batches, epoch)), first_numbers(21));
      orders.insert(records_of(batches, epoch));
      EXPECT_EQ(batches[3 * epoch + 2].after.position, (epoch + 1) * epoch_positions);
    }
    EXPECT_EQ(orders.size(), 5U) << "each epoch has its own order";
    EXPECT_EQ(run.stream->given(), 5U * 21);
  }
}

TEST(PipelineStream, OfFiniteLengthMayRunForever) {
  StreamRun run(21);
  run.stream->restarts = true;
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline, 100).back().epoch, 33U);
}

TEST(PipelineStream, CanBeReadAgainByALaterRunIfItRestarts) {
  StreamRun run(50);
  run.stream->restarts = true;
  run.options.epochs = 1;
  const auto dataset = one_pass_dataset(run.stream, run.windows);
  std::vector<std::uint64_t> first;
  {
    Pipeline pipeline(dataset, run.transform, run.device, run.options);
    const Error error =
        error_of([&] { Pipeline(dataset, run.transform, run.device, run.options); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("brook: another pipeline reads this stream"));
    first = records_of(take(pipeline));
  }
  Pipeline pipeline(dataset, run.transform, run.device, run.options);
  EXPECT_EQ(records_of(take(pipeline)), first);
}

TEST(PipelineStream, CanBeReadAgainThoughARunsRecordsAreHeld) {
  StreamRun run(50);
  run.stream->restarts = true;
  const auto dataset = one_pass_dataset(run.stream, run.windows);
  EXPECT_TRUE(can_restart(*dataset));
  std::unique_ptr<DatasetReader> reader;
  {
    Pipeline pipeline(dataset, run.transform, run.device, run.options);
    reader = dataset->make_reader();
  }
  Pipeline pipeline(dataset, run.transform, run.device, run.options);
  EXPECT_TRUE(pipeline.next());
}

TEST(PipelineStream, IsNotInterruptedWhenAnEndedRunIsDestroyed) {
  StreamRun run(50);
  run.stream->restarts = true;
  run.options.epochs = 1;
  std::atomic<int> interrupts{0};
  run.stream->on_interrupt = [&] { ++interrupts; };
  const auto dataset = one_pass_dataset(run.stream, run.windows);
  Pipeline pipeline(dataset, run.transform, run.device, run.options);
  pipeline.stop();
  const int before = interrupts;
  pipeline = Pipeline(dataset, run.transform, run.device, run.options);
  EXPECT_EQ(interrupts, before);
  EXPECT_EQ(take(pipeline).size(), 7U);
}

TEST(PipelineStream, IsReadOnceIfItCannotRestart) {
  StreamRun run(50);
  const auto dataset = one_pass_dataset(run.stream, run.windows);
  EXPECT_FALSE(can_restart(*dataset));
  {
    Pipeline pipeline(dataset, run.transform, run.device, run.options);
    EXPECT_EQ(take(pipeline).size(), 7U);
  }
  Error error = error_of([&] { Pipeline(dataset, run.transform, run.device, run.options); });
  EXPECT_THAT(error.what(), HasSubstr("brook: a pipeline has read this stream"));
  run.options.epochs = 2;
  error = error_of([&] { (void)run.pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("brook: epochs is 2, but this stream can be read only once"));
}

TEST(PipelineStream, RanksDealEachGlobalBatch) {
  for (const LastBatch last_batch : {LastBatch::partial, LastBatch::drop, LastBatch::pad}) {
    const auto run_of = [&](std::uint32_t rank, std::uint32_t world) {
      StreamRun run(101);
      run.options.last_batch = last_batch;
      run.options.ranks = {.this_process = {.rank = rank, .world = world}, .global_batch_size = 10};
      Pipeline pipeline = run.pipeline();
      return take(pipeline);
    };
    const std::vector<BatchContents> whole = run_of(0, 1);
    const std::vector<BatchContents> left = run_of(0, 2);
    const std::vector<BatchContents> right = run_of(1, 2);
    ASSERT_EQ(left.size(), whole.size());
    ASSERT_EQ(right.size(), whole.size());
    for (std::size_t number = 0; number < whole.size(); ++number) {
      std::vector<std::uint64_t> both = left[number].indices;
      both.insert(both.end(), right[number].indices.begin(), right[number].indices.end());
      EXPECT_EQ(both, whole[number].indices);
      std::vector<std::uint64_t> draws = left[number].draws;
      draws.insert(draws.end(), right[number].draws.begin(), right[number].draws.end());
      EXPECT_EQ(draws, whole[number].draws);
      EXPECT_EQ(left[number].after, whole[number].after);
      EXPECT_EQ(right[number].last_in_epoch, whole[number].last_in_epoch);
    }
  }
}

TEST(PipelineStream, RefusesWhatNeedsTheNumberOfRecords) {
  StreamRun run(50);
  const auto dataset = one_pass_dataset(run.stream, run.windows);
  EXPECT_THAT(error_of([&] { (void)dataset->size(); }).what(),
              HasSubstr("brook: the number of records of a stream is known only at its end"));
  EXPECT_THAT(error_of([&] {
                (void)concat_datasets({dataset, dataset});
              }).what(),
              HasSubstr("known only at its end"));
  EXPECT_THAT(error_of([&] { (void)dataset->make_reader(); }).what(),
              HasSubstr("by a pipeline only"));
  for (const Order& order : {Order::blocks({}), Order().repeated(2), Order().subset({1, 2})}) {
    run.options.order = order;
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("brook: the order needs the number of records"));
  }
  EXPECT_THAT(error_of([&] { one_pass_dataset(run.stream, {.window_records = 0}); }).what(),
              HasSubstr("window_records is 0"));
  EXPECT_THAT(error_of([&] { one_pass_dataset(run.stream, {.memory_bytes = 0}); }).what(),
              HasSubstr("memory_bytes is 0"));
  EXPECT_THAT(error_of([&] { one_pass_dataset(nullptr); }).what(), HasSubstr("null"));
}

}  // namespace
}  // namespace millrace
