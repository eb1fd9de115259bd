// SPDX-License-Identifier: Apache-2.0
//
// Tests of transforms of whole batches, which run once their samples are made.
#include <gmock/gmock.h>
#include <millrace/batch_transform.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::SmallRun;

/// Adds the sum of all labels to each sample, and a random number of the batch.
class SumBatch : public BatchTransform {
 public:
  std::vector<FieldSpec> fields(const SampleSpec&) const override {
    return {
        {"sum", DType::int64, {}}, {"drawn", DType::uint64, {}}, {"list", DType::int32, {4}, true}};
  }
  std::string stage() const override { return "sum"; }
  std::optional<std::uint64_t> fingerprint() const override { return identity; }
  void run(MadeBatch& batch, Random& random) const override {
    if (on_run) on_run(batch);
    const auto labels = batch["label"].as<std::int64_t>();
    const std::int64_t sum = std::accumulate(labels.begin(), labels.end(), std::int64_t{0});
    for (std::int64_t& one : batch["sum"].as<std::int64_t>()) {
      EXPECT_EQ(one, 0) << "what the batch before has left";
      one = sum;
    }
    std::ranges::fill(batch["drawn"].as<std::uint64_t>(), random.bits64());
    for (std::size_t sample = 0; sample < batch.size(); ++sample) {
      batch["list.length"].as<std::uint32_t>()[sample] = static_cast<std::uint32_t>(sample % 5);
      for (std::size_t n = 0; n < sample % 5; ++n)
        batch["list"].as<std::int32_t>()[sample * 4 + n] = static_cast<std::int32_t>(n + 1);
    }
  }

  std::function<void(MadeBatch&)> on_run;
  std::optional<std::uint64_t> identity;
};

std::shared_ptr<SumBatch> sums() { return std::make_shared<SumBatch>(); }

struct Seen {
  std::vector<std::int64_t> sums;
  std::vector<std::uint64_t> drawn;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen_by(Pipeline pipeline) {
  Seen seen;
  while (const Batch batch = pipeline.next()) {
    const auto labels = batch.labels().as<std::int64_t>();
    const std::int64_t sum = std::accumulate(labels.begin(), labels.end(), std::int64_t{0});
    for (const std::int64_t one : batch["sum"].as<std::int64_t>()) EXPECT_EQ(one, sum);
    const auto lists = batch["list"].as<std::int32_t>();
    for (std::size_t n = 0; n < lists.size(); ++n)
      EXPECT_EQ(lists[n], n % 4 < n / 4 % 5 ? static_cast<std::int32_t>(n % 4 + 1) : 0);
    seen.sums.push_back(sum);
    seen.drawn.push_back(batch["drawn"].as<std::uint64_t>()[0]);
  }
  return seen;
}

TEST(PipelineBatchTransform, MakesNoBlockingCallsWhereTheseAreForbidden) {
  const auto transform = sums();
  HostDevice device;
  transform->on_run = [&device](MadeBatch&) { (void)device.allocate_host(64, NumaNode{}); };
  SmallRun run(4000);
  run.options.batch_transform = transform;
  run.options.debug.forbid_blocking_calls = true;
  Pipeline pipeline = run.pipeline();
  const Error error = error_of([&] {
    while (pipeline.next()) continue;
  });
  EXPECT_EQ(error.stage(), "make");
  EXPECT_THAT(error.what(), HasSubstr("HostDevice::allocate_host"));
}

// 44 records: the last batch is shorter than the others.
TEST(PipelineBatchTransform, SeesAllSamplesOfABatch) {
  std::optional<Seen> first;
  for (const bool copies : {false, true})
    for (const unsigned workers : {1U, 4U}) {
      SmallRun run = testing::uneven_run(44, copies);
      run.workers(workers);
      run.options.epochs = 3;
      run.options.slots.prefetch = 2;
      run.options.batch_transform = sums();
      const Seen seen = seen_by(run.pipeline());
      EXPECT_EQ(seen.sums.size(), 18U);
      if (!first) first = seen;
      EXPECT_EQ(seen, *first);
    }
  std::vector<std::uint64_t> drawn = first->drawn;
  std::ranges::sort(drawn);
  EXPECT_TRUE(std::ranges::adjacent_find(drawn) == drawn.end()) << "each batch draws for itself";
}

TEST(PipelineBatchTransform, GoesOnInAResumedRun) {
  SmallRun run(44);
  run.options.epochs = 2;
  run.options.batch_transform = sums();
  const Seen whole = seen_by(run.pipeline());
  Pipeline begun = run.pipeline();
  for (int n = 0; n < 4; ++n) (void)begun.next();
  run.options.resume.from = begun.state();
  const Seen rest = seen_by(run.pipeline());
  ASSERT_EQ(rest.drawn.size(), whole.drawn.size() - 4);
  EXPECT_TRUE(std::equal(rest.drawn.begin(), rest.drawn.end(), whole.drawn.begin() + 4));
}

/// A transform with a batch transform of its own and a fingerprint.
class WithSums final : public Transform {
 public:
  const SampleSpec& spec() const override { return stamps_.spec(); }
  std::optional<std::uint64_t> fingerprint() const override { return 5; }
  std::vector<std::string> stages() const override { return stamps_.stages(); }
  std::shared_ptr<const BatchTransform> batch_transform() const override { return sums_; }
  std::unique_ptr<TransformWorker> make_worker() const override { return stamps_.make_worker(); }

 private:
  testing::StampTransform stamps_;
  std::shared_ptr<const BatchTransform> sums_ = sums();
};

TEST(PipelineBatchTransform, MayComeWithTheTransform) {
  SmallRun run(44);
  const auto transform = std::make_shared<WithSums>();
  EXPECT_EQ(seen_by(Pipeline(run.dataset, transform, run.device, run.options)).sums.size(), 6U);
}

TEST(PipelineBatchTransform, IsPartOfTheRunsIdentity) {
  SmallRun run(44);
  const auto state_with = [&](std::optional<std::uint64_t> identity) {
    const auto own = sums();
    own->identity = identity;
    run.options.batch_transform = own;
    return Pipeline(run.dataset, std::make_shared<WithSums>(), run.device, run.options).state();
  };
  const std::optional<std::uint64_t> one = state_with(1).recipe;
  ASSERT_TRUE(one);
  EXPECT_EQ(state_with(1).recipe, one);
  EXPECT_NE(state_with(2).recipe, one);
  EXPECT_EQ(state_with(std::nullopt).recipe, std::nullopt) << "it cannot be compared";
}

TEST(PipelineBatchTransform, HasAStageOfItsOwn) {
  SmallRun run(44);
  run.options.batch_transform = sums();
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  const Report report = pipeline.report();
  const auto stage = std::ranges::find(report.stages, "sum", &StageReport::name);
  ASSERT_NE(stage, report.stages.end());
  EXPECT_EQ(stage->each.count, 6U) << "once for each batch";
}

TEST(PipelineBatchTransform, SeesWhichSamplesAreNotValid) {
  SmallRun run(16);
  run.options.batch_size = 16;
  run.options.bad_records = BadRecords::mark;
  run.transform->on_end = [](const Record& record) {
    return record.index() == 5 ? Status::bad("five") : Status::ok();
  };
  const auto own = sums();
  std::vector<std::uint64_t> invalid;
  own->on_run = [&](MadeBatch& batch) {
    for (std::size_t sample = 0; sample < batch.size(); ++sample)
      if (batch.valid()[sample] == 0) invalid.push_back(batch.indices()[sample]);
  };
  run.options.batch_transform = own;
  Pipeline pipeline = run.pipeline();
  EXPECT_TRUE(pipeline.next());
  EXPECT_THAT(invalid, ::testing::ElementsAre(5U));
}

TEST(PipelineBatchTransform, ThatThrowsEndsTheRun) {
  SmallRun run(44);
  const auto own = sums();
  own->on_run = [](MadeBatch& batch) {
    if (std::ranges::count(batch.indices(), 7U) > 0) throw std::runtime_error("seven is here");
  };
  run.options.batch_transform = own;
  Pipeline pipeline = run.pipeline();
  const Error error = error_of([&] {
    while (pipeline.next()) continue;
  });
  EXPECT_EQ(error.code(), ErrorCode::transform);
  EXPECT_THAT(error.what(), HasSubstr("seven is here"));
  EXPECT_THAT(error.what(), HasSubstr("sum of batch "));
}

TEST(PipelineBatchTransform, IsRefusedWhereItDoesNotFit) {
  SmallRun run(44);
  run.options.batch_transform = sums();
  run.options.slots.micro_batches = 2;
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(),
              HasSubstr("micro_batches is 2; it must be 1, since the batch transform \"sum\""));
  class Twice final : public SumBatch {
    std::vector<FieldSpec> fields(const SampleSpec&) const override {
      return {{"label", DType::int64, {}}};
    }
  };
  run.options.slots.micro_batches = 1;
  run.options.batch_transform = std::make_shared<Twice>();
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(), HasSubstr("\"label\" comes twice"));
}

TEST(PipelineBatchTransform, OneThatHangsIsNamedWithItsBatch) {
  const auto gate = std::make_shared<testing::Gate>();
  const testing::OpensAtEnd opens(*gate);
  std::string stuck;
  SmallRun run(80);
  run.options.order = Order::sequential();
  run.options.slots.prefetch = 1;
  run.options.debug.stop_timeout = std::chrono::milliseconds(50);
  run.options.debug.on_stuck = [&stuck](std::string_view what) { stuck = what; };
  const auto batch_transform = sums();
  batch_transform->on_run = [gate](MadeBatch& batch) {
    if (batch.indices()[0] == 40) {
      EXPECT_TRUE(gate->pass());
    }
  };
  run.options.batch_transform = batch_transform;
  {
    Pipeline pipeline = run.pipeline();
    for (int batch = 0; batch < 5; ++batch) EXPECT_TRUE(pipeline.next());
    EXPECT_TRUE(testing::eventually([&gate] { return gate->arrived() == 1; }));
  }
  EXPECT_THAT(stuck, HasSubstr("sum of batch 5 has been running"));
}

}  // namespace
}  // namespace millrace
