// SPDX-License-Identifier: Apache-2.0
//
// Tests of training and evaluation at the same time: two pipelines with one dataset and one
// runtime.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::eventually;
using testing::expect_positions;
using testing::SmallRun;

TEST(PipelinePair, BothAreCorrectAtTheSameTime) {
  SmallRun train(333, true);
  train.workers(2);
  train.options.epochs = 3;
  SmallRun eval = train;
  eval.device = std::make_shared<HostDevice>();
  eval.transform = std::make_shared<testing::StampTransform>(33);
  eval.options.order = Order::sequential();
  eval.options.batch_size = 5;
  eval.options.seed = 1;
  Pipeline train_pipeline = train.pipeline();
  Pipeline eval_pipeline = eval.pipeline();
  const auto check = [](Pipeline& pipeline, const SmallRun& run) {
    std::uint64_t position = 0;
    for (const BatchContents& batch : testing::take(pipeline)) {
      expect_positions(batch, run.sampler(), run.options.seed, position);
      position += batch.indices.size();
    }
    EXPECT_EQ(position, 3 * 333U);
  };
  std::jthread trainer([&] { check(train_pipeline, train); });
  std::jthread evaluator([&] { check(eval_pipeline, eval); });
}

TEST(PipelinePair, NeitherStarvesTheOther) {
  SmallRun train(4000);
  train.workers(2);
  train.options.epochs = 0;
  train.options.slots.prefetch = 16;
  std::atomic<int> factor{1};
  const auto slow = [&factor](const Record&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(factor));
  };
  train.transform->on_begin = slow;
  SmallRun eval(200);
  eval.options.runtime = train.options.runtime;
  eval.transform->on_begin = slow;
  Pipeline train_pipeline = train.pipeline();
  std::atomic<bool> ending{false};
  std::atomic<std::uint64_t> trained{0};
  std::jthread trainer([&] {
    while (!ending) {
      (void)train_pipeline.next();
      ++trained;
    }
  });
  ASSERT_TRUE(eventually([&] { return trained > 2; }));
  const auto evaluate = [&](int longer) {
    factor = longer;
    const std::uint64_t before = train.transform->made();
    Pipeline eval_pipeline = eval.pipeline();
    EXPECT_EQ(testing::take(eval_pipeline).size(), 25U);
    return train.transform->made() - before;
  };
  const std::uint64_t during =
      testing::best_of_longer(evaluate, [](std::uint64_t made) { return made > 50 && made < 800; });
  ending = true;
  // They take turns sample by sample, so about 200 of each are made. A busy machine may reduce that
  // to a quarter.
  EXPECT_GT(during, 50U) << "the evaluation starved the training";
  EXPECT_LT(during, 800U) << "the training starved the evaluation";
}

TEST(PipelinePair, OneFailsTheOtherGoesOn) {
  SmallRun good(400);
  good.workers(2);
  SmallRun bad(400);
  bad.options.runtime = good.options.runtime;
  bad.transform->on_end = [](const Record&) -> Status { throw std::runtime_error("broken"); };
  Pipeline good_pipeline = good.pipeline();
  Pipeline bad_pipeline = bad.pipeline();
  EXPECT_THROW((void)bad_pipeline.next(), Error);
  EXPECT_EQ(testing::take(good_pipeline).size(), 50U);
}

}  // namespace
}  // namespace millrace
