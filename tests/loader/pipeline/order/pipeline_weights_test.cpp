// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "pipeline/planning/run_sampler.h"
#include "support/sanitizers.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::error_of;
using ::testing::HasSubstr;
using testing::SmallRun;
using testing::take;

/// 40 weights, positive for the records with this remainder by 4.
std::vector<double> weights_of(std::uint64_t remainder) {
  std::vector<double> weights(40);
  for (std::size_t record = remainder; record < 40; record += 4)
    weights[record] = 1 + static_cast<double>(record);
  return weights;
}

/// Six epochs of five batches, of which at most two are planned ahead if batches are not copied.
SmallRun weighted_run(bool copies = false) {
  SmallRun run = testing::uneven_run(40, copies);
  run.options.order = Order::weighted(weights_of(0));
  run.options.epochs = 6;
  run.options.slots.prefetch = 2;
  return run;
}

/// A run whose weights change for epoch 1 within epoch 0, and for epoch 4 within epoch 2.
std::vector<BatchContents> changed_run(const SmallRun& run) {
  Pipeline pipeline = run.pipeline();
  std::vector<BatchContents> batches = take(pipeline, 1);
  const auto add = [&](std::size_t most) {
    for (BatchContents& batch : take(pipeline, most)) batches.push_back(std::move(batch));
  };
  EXPECT_EQ(pipeline.set_weights(weights_of(1)), 1U);
  add(13);
  EXPECT_EQ(pipeline.set_weights(weights_of(2)), 4U);
  add(SIZE_MAX);
  return batches;
}

Order order_of_changed_run() {
  return Order::weighted(weights_of(0)).reweighted(1, weights_of(1)).reweighted(4, weights_of(2));
}

TEST(PipelineWeights, AnEpochHasThoseThatWereSetForIt) {
  for (const bool copies : {false, true}) {
    for (const unsigned workers : {1U, 3U}) {
      SCOPED_TRACE(::testing::Message() << workers << " workers, copies " << copies);
      SmallRun run = weighted_run(copies);
      if (copies) run.options.slots = {.prefetch = 1, .device_slots = 1};
      run.workers(workers);
      const std::vector<BatchContents> batches = changed_run(run);
      ASSERT_EQ(batches.size(), 30U);
      for (const BatchContents& batch : batches) {
        const std::uint64_t weights = batch.epoch < 1 ? 0 : batch.epoch < 4 ? 1 : 2;
        const Sampler sampler(Order::weighted(weights_of(weights)), 40, 42);
        testing::expect_positions(batch, sampler, 42, batch.number * 8);
      }
    }
  }
}

TEST(PipelineWeights, TheEpochFollowsFromTheBatchesHandedOut) {
  SmallRun run = weighted_run();
  run.options.slots.prefetch = 3;
  Pipeline pipeline = run.pipeline();
  for (std::uint64_t taken = 0; taken <= 12; ++taken) {
    EXPECT_EQ(pipeline.set_weights(weights_of(1)), (taken + 3 + 4) / 5) << taken << " were taken";
    ASSERT_TRUE(pipeline.next());
  }
}

// Whenever the call comes, no batch has records of other weights than its epoch's.
TEST(PipelineWeights, MayChangeWhileAnotherThreadTakesBatches) {
  SmallRun run = weighted_run();
  run.options.epochs = 400;
  run.transform->on_begin = nullptr;
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  std::vector<std::uint64_t> epochs;  // of the changes to the weights of 1, 2, 3, 0, 1 ...
  std::atomic<std::size_t> changed{0};
  std::atomic<bool> ended{false};
  std::thread changing([&] {
    while (!ended) {
      const std::uint64_t epoch = pipeline.set_weights(weights_of((epochs.size() + 1) % 4));
      EXPECT_GE(epoch, epochs.empty() ? 0 : epochs.back());
      epochs.push_back(epoch);
      ++changed;
    }
  });
  std::vector<BatchContents> batches;
  for (const std::size_t most : {400UL, 400UL, 400UL, 400UL, SIZE_MAX}) {
    const std::size_t before = changed;  // on a busy machine that thread may come late
    EXPECT_TRUE(testing::eventually([&] { return changed > before; }));
    for (BatchContents& batch : take(pipeline, most)) batches.push_back(std::move(batch));
  }
  ended = true;
  changing.join();
  ASSERT_EQ(batches.size(), 2000U);
  std::size_t changes = 0;
  for (const BatchContents& batch : batches) {
    while (changes < epochs.size() && epochs[changes] <= batch.epoch) ++changes;
    for (const std::uint64_t record : batch.indices)
      ASSERT_EQ(record % 4, changes % 4) << "batch " << batch.number;
  }
  EXPECT_GT(changes, 3U);
}

// A trainer that computes weights from a whole epoch has them in the very next one.
TEST(PipelineEpochBreak, LetsWeightsChangeBetweenTwoEpochs) {
  for (const bool copies : {false, true}) {
    SmallRun run = weighted_run(copies);
    run.options.slots = {.prefetch = 4, .epoch_break = true};
    run.workers(2);
    Pipeline pipeline = run.pipeline();
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_EQ(run.dataset->reads(), 40 * epoch) << "no batch is made yet";
      EXPECT_LE(run.dataset->prefetched(), 40 * epoch);
      EXPECT_EQ(pipeline.set_weights(weights_of(epoch % 4)), epoch);
      const Sampler sampler(Order::weighted(weights_of(epoch % 4)), 40, 42);
      const std::vector<BatchContents> batches = take(pipeline, 5);
      ASSERT_EQ(batches.size(), 5U);
      for (const BatchContents& batch : batches)
        testing::expect_positions(batch, sampler, 42, batch.number * 8);
    }
    EXPECT_FALSE(pipeline.next());
    EXPECT_EQ(pipeline.set_weights(weights_of(1)), 6U) << "after the last epoch";
  }
}

TEST(PipelineEpochBreak, LetsWeightsChangeInARunThatResumesBetweenEpochs) {
  SmallRun run = weighted_run();
  run.options.slots.epoch_break = true;
  Pipeline whole = run.pipeline();
  run.options.resume.from = take(whole, 5).back().after;
  Pipeline resumed = run.pipeline();
  for (Pipeline* one : {&whole, &resumed}) EXPECT_EQ(one->set_weights(weights_of(1)), 1U);
  EXPECT_EQ(take(resumed), take(whole));
}

TEST(PipelineEpochBreak, ChangesNoBatch) {
  SmallRun run = testing::uneven_run(29);
  run.options.epochs = 4;
  Pipeline plain = run.pipeline();
  const std::vector<BatchContents> reference = take(plain);
  run.options.slots.epoch_break = true;
  run.workers(3);
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(take(pipeline), reference);
  for (const std::size_t number : {std::size_t{3}, std::size_t{5}, reference.size() - 1}) {
    run.options.resume.from = reference[number].after;
    Pipeline resumed = run.pipeline();
    EXPECT_EQ(take(resumed),
              std::vector<BatchContents>(
                  reference.begin() + static_cast<std::ptrdiff_t>(number) + 1, reference.end()));
  }
}

TEST(PipelineEpochBreak, SeveralThreadsTakeAllBatches) {
  SmallRun run(29);
  run.options.epochs = 50;
  run.options.slots.epoch_break = true;
  Pipeline pipeline = run.pipeline();
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n)
    threads.emplace_back([&] {
      while (pipeline.next()) ++taken;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 50U * 4);
}

TEST(PipelineEpochBreak, EndsAtOnceWhenStoppedBetweenEpochs) {
  SmallRun run(16);
  run.options.epochs = 2;
  run.options.slots.epoch_break = true;
  Pipeline pipeline = run.pipeline();
  (void)take(pipeline, 2);
  EXPECT_NO_THROW(pipeline.stop());
  EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).code(), ErrorCode::stopped);
}

TEST(PipelineWeights, ResumesAnywhereWithTheWeightsOfTheEpochs) {
  SmallRun run = weighted_run();
  const std::vector<BatchContents> reference = changed_run(run);
  run.options.order = order_of_changed_run();
  Pipeline whole = run.pipeline();
  for (std::size_t number = 0; number < reference.size(); ++number) {
    SCOPED_TRACE(::testing::Message() << "after batch " << number);
    // A state has the changes that were known when the batch was taken.
    const std::uint64_t epoch = (number + 1) / 5;
    SmallRun resumed = run;
    if (number < 1) resumed.options.order = Order::weighted(weights_of(0));
    if (number >= 1 && number < 14)
      resumed.options.order = Order::weighted(weights_of(0)).reweighted(1, weights_of(1));
    resumed.options.resume.from = State::from_json(reference[number].after.to_json());
    Pipeline pipeline = resumed.pipeline();
    EXPECT_EQ(pipeline.state(), reference[number].after);
    if (number < 1) {
      EXPECT_EQ(pipeline.set_weights(weights_of(1)), 1U);
    }
    std::vector<BatchContents> batches = take(pipeline, number < 13 ? 13 - number : 0);
    if (number < 14) {
      EXPECT_EQ(pipeline.set_weights(weights_of(2)), 4U);
    }
    for (BatchContents& batch : take(pipeline)) batches.push_back(std::move(batch));
    ASSERT_EQ(batches.size(), reference.size() - 1 - number);
    for (std::size_t n = 0; n < batches.size(); ++n) {
      const BatchContents& expected = reference[number + 1 + n];
      EXPECT_EQ(batches[n].indices, expected.indices) << "batch " << expected.number;
      EXPECT_EQ(batches[n].images, expected.images) << "batch " << expected.number;
    }
    if (epoch < 4 || number >= reference.size() - 1) continue;
    resumed.options.order = Order::weighted(weights_of(2));
    Pipeline plain = resumed.pipeline();
    EXPECT_EQ(take(plain, 1).front(), reference[number + 1]) << "only the weights in force";
  }
}

TEST(PipelineWeights, AResumedRunWithOtherWeightsIsRefused) {
  const std::vector<BatchContents> reference = changed_run(weighted_run());
  const auto refusal = [&](std::size_t number, const Order& order) {
    SmallRun run = weighted_run();
    run.options.order = order;
    run.options.resume.from = reference[number].after;
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  const Order first = Order::weighted(weights_of(0));
  EXPECT_THAT(refusal(9, first), HasSubstr("weights in this epoch")) << "those of epoch 0";
  EXPECT_THAT(refusal(20, order_of_changed_run().reweighted(4, weights_of(3))),
              HasSubstr("weights in this epoch"));
  // After batch 15 of epoch 3 those of epoch 4 are known.
  const Order in_force = Order::weighted(weights_of(1));
  EXPECT_THAT(refusal(15, in_force),
              HasSubstr("the new weights of epoch 4 (Order::reweighted) was"));
  EXPECT_THAT(refusal(15, in_force), HasSubstr("here it is not set"));
  EXPECT_THAT(refusal(15, in_force.reweighted(4, weights_of(3))), HasSubstr("epoch 4"));
  EXPECT_THAT(refusal(15, in_force.reweighted(5, weights_of(2))),
              ::testing::AllOf(HasSubstr("epoch 4"), HasSubstr("epoch 5")));
  EXPECT_THAT(refusal(16, order_of_changed_run().reweighted(5, weights_of(3))),
              HasSubstr("epoch 5 (Order::reweighted) was not set"));
}

TEST(PipelineWeights, StatesOfARunThatNeverChangesThemAreAsBefore) {
  SmallRun run = weighted_run();
  Pipeline pipeline = run.pipeline();
  ASSERT_TRUE(pipeline.next());
  State state = pipeline.state();
  EXPECT_EQ(state.sampler, run.sampler().hash());
  EXPECT_THAT(state.new_weights, ::testing::IsEmpty());
  EXPECT_THAT(state.to_json(), ::testing::Not(HasSubstr("new_weights")));
  EXPECT_EQ(pipeline.set_weights(weights_of(1)), 1U);
  state = pipeline.state();
  EXPECT_EQ(state.sampler, run.sampler().hash()) << "still in epoch 0";
  const std::uint64_t hash = Sampler(Order::weighted(weights_of(1)), 40, 42).hash();
  EXPECT_EQ(state.new_weights, (std::vector<State::NewWeights>{{1, hash}}));
  (void)take(pipeline, 4);
  EXPECT_EQ(pipeline.state().sampler, hash);
  EXPECT_THAT(pipeline.state().new_weights, ::testing::IsEmpty());
}

TEST(PipelineWeights, ReplacementsHaveTheWeightsOfTheirEpoch) {
  SmallRun run = weighted_run();
  run.options.bad_records = BadRecords::replace;
  run.transform->on_end = [](const Record& record) {
    return record.index() % 3 == 0 ? Status::bad("no end of image") : Status::ok();
  };
  const std::vector<BatchContents> batches = changed_run(run);
  std::uint64_t replaced = 0;
  for (const BatchContents& batch : batches) {
    const std::uint64_t remainder = batch.epoch < 1 ? 0 : batch.epoch < 4 ? 1 : 2;
    const Sampler sampler(Order::weighted(weights_of(remainder)), 40, 42);
    for (std::size_t sample = 0; sample < batch.indices.size(); ++sample) {
      EXPECT_EQ(batch.indices[sample] % 4, remainder) << "batch " << batch.number;
      const std::uint64_t planned = sampler(batch.number * 8 + sample);
      replaced += planned % 3 == 0 ? 1 : 0;
      EXPECT_TRUE(planned % 3 == 0 || batch.indices[sample] == planned) << planned;
    }
  }
  EXPECT_GT(replaced, 30U);
  run.options.order = order_of_changed_run();
  run.workers(3);
  Pipeline same = run.pipeline();
  const std::vector<BatchContents> again = take(same);
  ASSERT_EQ(again.size(), batches.size());
  for (std::size_t n = 0; n < again.size(); ++n) EXPECT_EQ(again[n].images, batches[n].images);
}

TEST(PipelineWeights, RanksThatCallAtTheSameBatchStayTogether) {
  SmallRun alone = weighted_run();
  const std::vector<BatchContents> reference = changed_run(alone);
  std::vector<std::vector<BatchContents>> of_rank;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    SmallRun run = weighted_run();
    run.workers(1 + 2 * rank);
    run.options.ranks = {.this_process = {.rank = rank, .world = 2}, .global_batch_size = 8};
    of_rank.push_back(changed_run(run));
    ASSERT_EQ(of_rank.back().size(), reference.size());
  }
  for (std::size_t number = 0; number < reference.size(); ++number) {
    std::vector<std::uint64_t> records = of_rank[0][number].indices;
    records.insert(records.end(), of_rank[1][number].indices.begin(),
                   of_rank[1][number].indices.end());
    EXPECT_EQ(records, reference[number].indices) << "batch " << number;
    EXPECT_EQ(of_rank[1][number].after, of_rank[0][number].after);
  }
}

TEST(PipelineWeights, RefusesWhatNoWeightedOrderTakes) {
  SmallRun shuffled(40);
  Pipeline other = shuffled.pipeline();
  EXPECT_THAT(error_of([&] { (void)other.set_weights(weights_of(0)); }).what(),
              HasSubstr("has no weights to change; make it by Order::weighted"));
  SmallRun run = weighted_run();
  Pipeline pipeline = run.pipeline();
  const auto refusal = [&](const std::vector<double>& weights) {
    const Error error = error_of([&] { (void)pipeline.set_weights(weights); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_THAT(refusal({}), HasSubstr("there are no weights"));
  EXPECT_THAT(refusal(std::vector<double>(40)), HasSubstr("all 40 weights are 0"));
  EXPECT_THAT(refusal({1, 2}), HasSubstr("there are 2 new weights, but the order has 40"));
  std::vector<double> weights = weights_of(0);
  weights[7] = -0.5;
  EXPECT_THAT(refusal(weights), HasSubstr("weight 7 is -0.5"));
  for (const BatchContents& batch : take(pipeline))
    testing::expect_positions(batch, run.sampler(), 42, batch.number * 8);
}

TEST(PipelineWeights, AStoppedRunMayBeGivenSome) {
  SmallRun run = weighted_run();
  Pipeline pipeline = run.pipeline();
  pipeline.stop();
  EXPECT_EQ(pipeline.set_weights(weights_of(1)), 1U);
}

TEST(RunSampler, ForgetsTheWeightsOfEarlierEpochs) {
  RunSampler run(Sampler(order_of_changed_run(), 40, 42));
  std::weak_ptr<const Sampler> first = run.for_epoch(0);
  EXPECT_EQ(run.current()->reweighted_epochs(), (std::vector<std::uint64_t>{1, 4}));
  EXPECT_FALSE(first.expired());
  const std::shared_ptr<const Sampler> third = run.for_epoch(3);
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(third->reweighted_epochs(), std::vector<std::uint64_t>{4});
  const Sampler whole(order_of_changed_run(), 40, 42);
  for (std::uint64_t position = 3 * 40; position < 6 * 40; ++position)
    EXPECT_EQ((*third)(position), whole(position));
  EXPECT_EQ(run.set_weights(weights_of(3), [] { return 4; }), 4U) << "instead of those set before";
  EXPECT_EQ((*run.for_epoch(4))(4 * 40) % 4, 3U);
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

// 40 changes of 400,000 weights would take 384 MB.
TEST(PipelineWeights, TablesOfPastEpochsAreFreed) {
  if (testing::one_in > 1) GTEST_SKIP() << "a sanitizer keeps freed memory";
  constexpr std::uint64_t records = 400'000;
  SmallRun run(records);
  std::vector<double> weights(records, 1.0);
  run.options.order = Order::weighted(weights, 8);  // an epoch is a batch
  run.options.epochs = 0;
  run.options.slots.prefetch = 1;
  Pipeline pipeline = run.pipeline();
  std::optional<std::uint64_t> before;
  for (std::size_t change = 0; change < 40; ++change) {
    weights[change] += 1;
    EXPECT_EQ(pipeline.set_weights(weights), change + 1);
    ASSERT_TRUE(pipeline.next());
    if (change == 4) before = resident_bytes();
  }
  EXPECT_LT(resident_bytes(), *before + 100'000'000);
}

}  // namespace
}  // namespace millrace
