// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/c_order.h>
#include <millrace/sampler.h>

#include <cstddef>
#include <functional>

#include "bench/c/numbers.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::numbers_dataset;
using testing::NumbersRun;

constexpr const char* options =
    R"({"format": 1, "options": {"workers": 2, "batch_size": 8}, "run": {"seed": 5, "epochs": 2}})";

/// Labels of a run in an order of the C library, which is freed when the run has begun.
std::vector<std::int64_t> labels_by(millrace_order* order) {
  NumbersRun run;
  run.setup.order = order;
  EXPECT_EQ(run.start(options), MILLRACE_OK) << run.error.message;
  millrace_order_free(order);
  auto labels = run.labels_left();
  std::erase(labels, -1);
  return labels;
}

/// Labels that C++'s order gives.
std::vector<std::int64_t> expected_by(const Order& order) {
  const Sampler sampler(order, 64, 5);
  std::vector<std::int64_t> labels;
  for (std::uint64_t position = 0; position < 2 * sampler.epoch_size(); ++position)
    labels.push_back(static_cast<std::int64_t>(sampler(position)));
  return labels;
}

TEST(COrder, DrawsWhatTheOrderOfCppDraws) {
  std::vector<double> weights(64, 1);
  weights[9] = 100;
  std::vector<std::uint32_t> lengths(64);
  for (std::uint32_t k = 0; k < 64; ++k) lengths[k] = k % 7;
  const millrace_source sources[] = {{24, 3}, {40, 1}};
  const std::uint64_t indices[] = {40, 3, 3, 17};
  const auto odd = [](void* user, std::uint64_t index) {
    ++*static_cast<int*>(user);
    return static_cast<std::int32_t>(index % 2);
  };
  int asked = 0;
  millrace_order* whole = nullptr;
  ASSERT_EQ(millrace_order_shuffled(&whole, nullptr), MILLRACE_OK);

  const struct {
    std::function<millrace_status(millrace_order**)> make;
    Order expected;
  } cases[] = {
      {[&](auto** to) { return millrace_order_shuffled(to, nullptr); }, Order()},
      {[&](auto** to) { return millrace_order_sequential(to, nullptr); }, Order::sequential()},
      {[&](auto** to) { return millrace_order_blocks(4, 3, to, nullptr); },
       Order::blocks({.block_records = 4, .window_blocks = 3})},
      {[&](auto** to) { return millrace_order_bucketed(lengths.data(), 64, 32, 8, to, nullptr); },
       Order::bucketed(lengths, {.window_records = 32, .group_records = 8})},
      {[&](auto** to) { return millrace_order_bucketed_by("number", 32, 8, to, nullptr); },
       Order::bucketed(std::vector<std::uint32_t>(64, 8),
                       {.window_records = 32, .group_records = 8})},
      {[&](auto** to) { return millrace_order_weighted(weights.data(), 64, 40, to, nullptr); },
       Order::weighted(weights, 40)},
      {[&](auto** to) { return millrace_order_mixed(sources, 2, 0, to, nullptr); },
       Order::mixed({{.records = 24, .weight = 3}, {.records = 40, .weight = 1}})},
      {[&](auto** to) { return millrace_order_subset(whole, indices, 4, to, nullptr); },
       Order().subset({40, 3, 3, 17})},
      {[&](auto** to) { return millrace_order_filtered(whole, 64, odd, &asked, to, nullptr); },
       Order().filtered(64, [](std::uint64_t index) { return index % 2 == 1; })},
      {[&](auto** to) { return millrace_order_repeated(whole, 3, to, nullptr); },
       Order().repeated(3)},
  };
  for (const auto& [make, expected] : cases) {
    SCOPED_TRACE(&expected - &cases[0].expected);
    millrace_order* order = nullptr;
    ASSERT_EQ(make(&order), MILLRACE_OK);
    EXPECT_EQ(labels_by(order), expected_by(expected));
  }
  EXPECT_EQ(asked, 64);
  millrace_order_free(whole);
}

TEST(COrder, WeightsChangeBetweenEpochs) {
  // 8 batches in an epoch; 4 are planned ahead.
  const auto ones_of = [](std::size_t record) {
    std::vector<double> weights(64);
    weights[record] = 1;
    return weights;
  };
  NumbersRun run;
  ASSERT_EQ(millrace_order_weighted(ones_of(3).data(), 64, 0, &run.setup.order, nullptr),
            MILLRACE_OK);
  ASSERT_EQ(run.start(options), MILLRACE_OK) << run.error.message;
  std::uint64_t epoch = 0;
  EXPECT_EQ(millrace_pipeline_set_weights(run.pipeline, ones_of(5).data(), 64, &epoch, nullptr),
            MILLRACE_OK);
  EXPECT_EQ(epoch, 1U);
  char* state = nullptr;
  ASSERT_EQ(millrace_pipeline_state(run.pipeline, &state, nullptr), MILLRACE_OK);
  auto labels = run.labels_left();
  std::erase(labels, -1);
  std::vector<std::int64_t> expected(128, 3);
  std::fill(expected.begin() + 64, expected.end(), 5);
  EXPECT_EQ(labels, expected);

  NumbersRun resumed;
  resumed.setup.state = state;
  resumed.setup.order = run.setup.order;
  EXPECT_EQ(resumed.start(options), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(resumed.error.message, HasSubstr("the new weights of epoch 1"));
  ASSERT_EQ(millrace_order_reweighted(run.setup.order, 1, ones_of(5).data(), 64,
                                      &resumed.setup.order, nullptr),
            MILLRACE_OK);
  EXPECT_EQ(resumed.start(options), MILLRACE_OK) << resumed.error.message;
  labels = resumed.labels_left();
  std::erase(labels, -1);
  EXPECT_EQ(labels, expected);
  millrace_text_free(state);

  EXPECT_EQ(millrace_pipeline_set_weights(run.pipeline, nullptr, 64, &epoch, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(run.error.message, "the argument weights is null");
  EXPECT_EQ(millrace_pipeline_set_weights(run.pipeline, nullptr, 0, &epoch, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("there are no weights"));
  millrace_order* none = nullptr;
  EXPECT_EQ(millrace_order_reweighted(run.setup.order, 1, ones_of(1).data(), 3, &none, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("there are 3 new weights, but the order has 64"));
  millrace_order_free(run.setup.order);
  millrace_order_free(resumed.setup.order);
}

TEST(COrder, ABreakLetsWeightsReachTheVeryNextEpoch) {
  std::vector<double> weights(64);
  weights[3] = 1;
  NumbersRun run;
  ASSERT_EQ(millrace_order_weighted(weights.data(), 64, 0, &run.setup.order, nullptr), MILLRACE_OK);
  ASSERT_EQ(run.start(R"({"format": 1, "options": {"workers": 2, "batch_size": 64},
                          "run": {"epochs": 2, "epoch_break": true}})"),
            MILLRACE_OK)
      << run.error.message;
  millrace_order_free(run.setup.order);
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK);
  millrace_batch_free(batch);
  std::swap(weights[3], weights[5]);
  std::uint64_t epoch = 0;
  ASSERT_EQ(millrace_pipeline_set_weights(run.pipeline, weights.data(), 64, &epoch, nullptr),
            MILLRACE_OK);
  EXPECT_EQ(epoch, 1U);
  auto labels = run.labels_left();
  std::erase(labels, -1);
  EXPECT_EQ(labels, std::vector<std::int64_t>(64, 5));
}

TEST(COrder, RefusesAsCppDoes) {
  NumbersRun run;
  millrace_order* order = nullptr;
  EXPECT_EQ(millrace_order_weighted(nullptr, 3, 0, &order, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(run.error.message, "the argument weights is null");
  EXPECT_EQ(millrace_order_weighted(nullptr, 0, 0, &order, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("there are no weights"));
  EXPECT_EQ(millrace_order_blocks(0, 1, &order, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("block_records is 0"));
  EXPECT_EQ(millrace_order_repeated(nullptr, 2, &order, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(run.error.message, "the order is null");
  EXPECT_EQ(order, nullptr);
  const double weights[] = {1, 2};
  ASSERT_EQ(millrace_order_weighted(weights, 2, 0, &run.setup.order, nullptr), MILLRACE_OK);
  EXPECT_EQ(run.start(options), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("64 records"));
  millrace_order_free(run.setup.order);
}

// Programs that were compiled before the setup had an order pass a shorter struct.
TEST(COrder, ASetupWithoutTheMemberIsTaken) {
  NumbersRun run;
  run.setup.struct_bytes = offsetof(millrace_pipeline_setup, order);
  run.setup.order = reinterpret_cast<millrace_order*>(&run);  // lies beyond the caller's struct
  EXPECT_EQ(run.start(options), MILLRACE_OK) << run.error.message;
  run.setup.struct_bytes -= 1;
  millrace_pipeline* pipeline = nullptr;
  EXPECT_EQ(millrace_pipeline_create(&run.setup, &pipeline, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("setup->struct_bytes"));
}

TEST(COrder, JoinedDatasetsContinueFromPartToPart) {
  Numbers numbers;
  NumbersRun run;
  millrace_dataset* parts[2] = {};
  for (millrace_dataset*& part : parts) {
    const auto records = numbers_dataset(numbers, 3);
    ASSERT_EQ(millrace_dataset_create(&records, &part, nullptr), MILLRACE_OK);
  }
  millrace_dataset* joined = nullptr;
  ASSERT_EQ(millrace_dataset_concat(parts, 2, &joined, &run.error), MILLRACE_OK);
  for (millrace_dataset* part : parts) millrace_dataset_free(part);
  EXPECT_EQ(numbers.freed, 0);
  run.setup.dataset = joined;
  ASSERT_EQ(
      run.start(R"({"format": 1, "options": {}, "run": {"order": "sequential", "epochs": 1}})"),
      MILLRACE_OK)
      << run.error.message;
  EXPECT_THAT(run.labels_left(), ElementsAre(0, 1, 2, 0, 1, 2, -1));
  millrace_dataset_free(joined);
  EXPECT_EQ(millrace_dataset_concat(nullptr, 0, &joined, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(millrace_dataset_concat(parts, 1, &joined, &run.error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("was freed"));
  millrace_pipeline_free(run.pipeline);
  EXPECT_EQ(numbers.freed, 2);
}

}  // namespace
}  // namespace millrace
