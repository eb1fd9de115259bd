// SPDX-License-Identifier: Apache-2.0
//
// Tests of pipelines with orders other than a full shuffle.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <set>
#include <vector>

#include "loader/pipeline/order/global_sequence.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::MemoryDataset;
using testing::SmallRun;
using testing::take;
using testing::uneven_run;

std::vector<Order> orders_of_hundred() {
  std::vector<double> weights(100, 1.0);
  for (std::size_t n = 0; n < 100; n += 2) weights[n] = 0;
  std::vector<std::uint32_t> lengths(100);
  for (std::uint32_t n = 0; n < 100; ++n) lengths[n] = n * 37 % 100;
  return {Order::sequential(),
          Order::blocks({.block_records = 9, .window_blocks = 3}),
          Order::weighted(weights, 70),
          Order::mixed({{30, 1}, {70, 3}}),
          Order::bucketed(lengths, {.window_records = 32, .group_records = 8}),
          Order::shuffled().filtered(100, [](std::uint64_t index) { return index % 3 == 0; }),
          Order::shuffled().repeated(2)};
}

TEST(PipelineOrders, BatchesHaveTheOrdersRecords) {
  for (const Order& order : orders_of_hundred()) {
    SmallRun run = uneven_run(100);
    run.options.order = order;
    run.options.epochs = 2;
    run.workers(3);
    Pipeline pipeline = run.pipeline();
    const auto batches = take(pipeline);
    const std::uint64_t epoch_size = run.sampler().epoch_size();
    ASSERT_EQ(batches.size(), 2 * ((epoch_size + 7) / 8));
    std::uint64_t position = 0;
    for (const BatchContents& batch : batches) {
      testing::expect_positions(batch, run.sampler(), run.options.seed, position);
      position += batch.indices.size();
    }
    EXPECT_EQ(position, 2 * epoch_size);
    EXPECT_EQ(pipeline.state().position, position);
  }
}

TEST(PipelineOrders, GoOnAfterResuming) {
  for (const Order& order : orders_of_hundred()) {
    SmallRun run(100);
    run.options.order = order;
    Pipeline whole = run.pipeline();
    const auto reference = take(whole);
    run.options.resume.from = State{.seed = run.options.seed, .position = 24};
    Pipeline resumed = run.pipeline();
    EXPECT_EQ(take(resumed), std::vector<BatchContents>(reference.begin() + 3, reference.end()));
  }
}

// Both copies of a record lie side by side in one batch, with other random numbers.
TEST(PipelineOrders, RepeatedRecordsAreAugmentedAnew) {
  SmallRun run(20);
  run.options.order = Order::shuffled().repeated(2);
  Pipeline pipeline = run.pipeline();
  for (const BatchContents& batch : take(pipeline))
    for (std::size_t sample = 0; sample < batch.indices.size(); sample += 2) {
      EXPECT_EQ(batch.indices[sample], batch.indices[sample + 1]);
      EXPECT_NE(batch.draws[sample], batch.draws[sample + 1]);
    }
}

TEST(PipelineOrders, ReplacementsAreOfTheOrdersRecords) {
  for (const Order& order : orders_of_hundred()) {
    SmallRun run(100);
    run.options.order = order;
    run.options.bad_records = BadRecords::replace;
    run.options.epochs = 5;
    run.dataset->on_read = [](std::uint64_t index) {
      if (index % 5 == 3) throw Error(ErrorCode::bad_record, "checksum differs");
    };
    const Sampler sampler = run.sampler();
    std::set<std::uint64_t> come;
    for (std::uint64_t position = 0; position < 5 * sampler.epoch_size(); ++position)
      come.insert(sampler(position));
    Pipeline pipeline = run.pipeline();
    for (const BatchContents& batch : take(pipeline))
      for (const std::uint64_t record : batch.indices) {
        EXPECT_NE(record % 5, 3U);
        EXPECT_TRUE(come.contains(record)) << record;
      }
    EXPECT_GT(pipeline.report().bad_records, 0U);
  }
}

TEST(PipelineOrders, BucketsAreTheGlobalBatchesOfAnyWorld) {
  SmallRun run(100);
  run.options.ranks.global_batch_size = 12;
  run.options.order = Order::bucketed_by("payload", {.window_records = 40, .group_records = 12});
  const std::vector<BatchContents> reference = testing::global_sequence(run, 1);
  ASSERT_EQ(reference.size(), 9U);
  for (const std::uint32_t world : {2U, 4U})
    EXPECT_EQ(testing::global_sequence(run, world), reference);
  EXPECT_EQ(testing::global_sequence(run, 2, reference[4].after),
            std::vector<BatchContents>(reference.begin() + 5, reference.end()));

  // Given lengths equal to the field's give the same order. A state refuses other lengths.
  run.options.order = Order::bucketed(
      std::vector<std::uint32_t>(100, static_cast<std::uint32_t>(MemoryDataset::payload_bytes)),
      {.window_records = 40, .group_records = 12});
  EXPECT_EQ(testing::global_sequence(run, 1), reference);
  run.options.order = Order::bucketed(std::vector<std::uint32_t>(100, 99),
                                      {.window_records = 40, .group_records = 12});
  run.options.resume.from = reference[4].after;
  EXPECT_THAT(testing::error_of([&] { (void)run.pipeline(); }).what(),
              ::testing::HasSubstr("the order of records"));

  run.options.order = Order::bucketed_by("text", {.group_records = 12});
  EXPECT_EQ(testing::error_of([&] { (void)run.pipeline(); }).code(), ErrorCode::not_found);
}

TEST(PipelineOrders, AnOrderOfAnotherDatasetIsRefused) {
  SmallRun run(100);
  run.options.order = Order::weighted(std::vector<double>(99, 1.0));
  const Error error = testing::error_of([&] { (void)run.pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("99 weights, but the dataset has 100 records"));
}

}  // namespace
}  // namespace millrace
