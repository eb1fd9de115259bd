// SPDX-License-Identifier: Apache-2.0
//
// Tests of batches as shares of output slots: how long they live, who may use them, and what
// happens when they hold all slots.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::BatchContents;
using testing::best_of_three;
using testing::contents;
using testing::error_of;
using testing::eventually;
using testing::expect_positions;
using testing::Gate;
using ::testing::HasSubstr;
using testing::OpensAtEnd;
using testing::patience;
using testing::SmallRun;
using testing::Stopwatch;

class PipelineOutputSlot : public ::testing::TestWithParam<bool> {
 protected:
  /// Number of batches that can be live at once.
  static std::size_t slots(const SmallRun& run) {
    return GetParam() ? run.options.slots.device_slots : run.options.slots.prefetch;
  }
};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineOutputSlot, ::testing::Bool());

TEST_P(PipelineOutputSlot, OutlivesScopeAndPipeline) {
  Batch kept;
  HostStream stream;
  SmallRun run(80, GetParam());
  {
    Pipeline pipeline = run.pipeline();
    (void)pipeline.next();
    kept = pipeline.next();
  }
  const std::weak_ptr<Dataset> dataset = run.dataset;
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept.number(), 1U);
  expect_positions(contents(kept), run.sampler(), 42, 8);
  kept.record_stream(stream);
  kept.reset();
  EXPECT_FALSE(kept);
}

TEST_P(PipelineOutputSlot, LeavesNothingBehindAfterTheLastBatch) {
  SmallRun run(80, GetParam());
  const std::weak_ptr<Dataset> dataset = run.dataset;
  const std::weak_ptr<Transform> transform = run.transform;
  const std::weak_ptr<Device> device = run.device;
  Batch kept;
  {
    Pipeline pipeline = run.pipeline();
    kept = pipeline.next();
  }
  run = SmallRun(1);
  kept.reset();
  EXPECT_TRUE(
      eventually([&] { return dataset.expired() && transform.expired() && device.expired(); }));
}

TEST_P(PipelineOutputSlot, MayBeUsedAndLetGoByAnotherThread) {
  SmallRun run(8 * 60, GetParam());
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  std::optional<std::future<void>> user;
  std::uint64_t number = 0;
  for (; Batch batch = pipeline.next(stream, patience); ++number) {
    stream.synchronize();
    if (user) user->get();
    user =
        std::async(std::launch::async, [batch = std::move(batch), number, sampler = run.sampler()] {
          EXPECT_EQ(batch.number(), number);
          expect_positions(contents(batch), sampler, 42, number * 8);
        });
  }
  user->get();
  EXPECT_EQ(number, 60U);
}

TEST_P(PipelineOutputSlot, KeepsAStreamUntilTheLastCopyGoes) {
  SmallRun run(8 * 20, GetParam());
  Pipeline pipeline = run.pipeline();
  for (int round = 0; round < 6; ++round) {
    auto taken_on = std::make_shared<HostStream>();
    Batch batch = pipeline.next(*taken_on);
    batch.record_stream(taken_on);
    auto further = std::make_shared<HostStream>();
    batch.record_stream(*further);
    batch.record_stream(further);
    const std::weak_ptr<HostStream> first = taken_on, second = further;
    taken_on->synchronize();
    taken_on.reset();
    further.reset();
    Batch copy = batch;
    batch.reset();
    EXPECT_FALSE(first.expired() || second.expired());
    copy.reset();
    EXPECT_TRUE(first.expired() && second.expired());
  }
}

TEST_P(PipelineOutputSlot, ManyThreadsMayShareABatch) {
  SmallRun run(8 * 20, GetParam());
  Pipeline pipeline = run.pipeline();
  while (Batch batch = pipeline.next()) {
    std::vector<std::jthread> users;
    for (int user = 0; user < 4; ++user)
      users.emplace_back([batch, sampler = run.sampler()] {
        const Batch copy = batch;
        expect_positions(contents(copy), sampler, 42, copy.number() * 8);
      });
    batch.reset();
  }
}

TEST_P(PipelineOutputSlot, ASlotIsReusedOnlyBehindEveryStreamThatUsesIt) {
  SmallRun run(8 * 30, GetParam());
  run.options.slots.prefetch = 2;
  Pipeline pipeline = run.pipeline();
  Gate gate;
  HostStream stream;
  HostStream second;
  const OpensAtEnd opens(gate);
  Batch first = pipeline.next(stream, patience);
  stream.synchronize();
  const BatchContents before = contents(first);
  first.record_stream(second);
  std::atomic<bool> same{false};
  second.launch([&gate, &same, before, images = first.images().as<std::uint8_t>(),
                 labels = first.labels().as<std::int64_t>()] {
    EXPECT_TRUE(gate.pass());
    same = std::equal(images.begin(), images.end(), before.images.begin(), before.images.end()) &&
           std::equal(labels.begin(), labels.end(), before.labels.begin(), before.labels.end());
  });
  first.reset();
  // All other slots are used again for as long as possible.
  std::uint64_t number = 1;
  try {
    for (; number < 30; ++number) {
      const Batch batch = pipeline.next(stream, number == 1 ? patience : 200ms);
      EXPECT_EQ(batch.number(), number);
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
  EXPECT_GT(number, 1U);
  gate.open();
  second.synchronize();
  EXPECT_TRUE(same) << "a slot was written while a recorded stream still had to read it";
  for (; number < 30; ++number) {
    const Batch batch = pipeline.next(stream, patience);
    stream.synchronize();
    expect_positions(contents(batch), run.sampler(), 42, number * 8);
  }
  EXPECT_FALSE(pipeline.next());
}

TEST_P(PipelineOutputSlot, OneMoreBatchThanSlotsIsRefusedAtOnce) {
  SmallRun run(800, GetParam());
  run.options.slots.prefetch = 3;
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  std::vector<Batch> held;
  for (std::size_t n = 0; n < slots(run); ++n) held.push_back(pipeline.next(stream));
  for (int again = 0; again < 2; ++again) {
    const Stopwatch time;
    const Error error = error_of([&] { (void)pipeline.next(stream); });
    EXPECT_LT(time.elapsed(), patience);
    EXPECT_EQ(error.code(), ErrorCode::slots_exhausted);
    EXPECT_THAT(error.what(), HasSubstr(GetParam() ? "device_slots" : "prefetch"))
        << "the message says what to do";
    EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).code(), ErrorCode::slots_exhausted);
    EXPECT_EQ(error_of([&] { (void)pipeline.next_in_micro_batches(stream); }).code(),
              ErrorCode::slots_exhausted);
  }
  held.erase(held.begin());
  const Batch next = pipeline.next(stream);
  EXPECT_EQ(next.number(), slots(run)) << "the refused calls took no batch";
}

TEST_P(PipelineOutputSlot, WithATimeoutWaitsForAnotherThreadToLetGo) {
  SmallRun run(800, GetParam());
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  std::vector<Batch> held;
  for (std::size_t n = 0; n < slots(run); ++n) held.push_back(pipeline.next(stream));
  const Stopwatch time;
  const Error error = error_of([&] { (void)pipeline.next(stream, 60ms); });
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_GE(time.elapsed(), 60ms);
  EXPECT_LT(time.elapsed(), patience);
  std::uint64_t number = slots(run);
  const auto wait_for_another = [&] {
    pipeline.restart_report();
    std::atomic<bool> let_go{false};
    std::jthread other([&, batch = std::move(held[0])]() mutable {
      std::this_thread::sleep_for(150ms);
      let_go = true;
      batch.reset();
    });
    held[0] = pipeline.next(stream, patience);
    EXPECT_TRUE(let_go);
    EXPECT_EQ(held[0].number(), number++);
    return pipeline.report();
  };
  const Report report = best_of_three(wait_for_another, [](const Report& waited) {
    return waited.ahead.max_ms >= 75 && waited.stall.max_ms < waited.ahead.max_ms;
  });
  EXPECT_GE(report.ahead.max_ms, 75);
  EXPECT_LT(report.stall.max_ms, report.ahead.max_ms) << "the data was made; a slot was missing";
}

TEST_P(PipelineOutputSlot, ASlotKeepsItsAddresses) {
  SmallRun run(8 * 50, GetParam());
  run.options.slots.micro_batches = 2;
  Pipeline pipeline = run.pipeline();
  std::map<std::size_t, std::vector<void*>> addresses;
  std::size_t batches = 0;
  while (const Batch batch = pipeline.next()) {
    const std::vector<void*> here{batch.images().data, batch.labels().data, batch["draw"].data};
    const auto [place, fresh] = addresses.emplace(batch.slot(), here);
    EXPECT_EQ(place->second, here);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.images().data) % 64, 0U);
    ++batches;
  }
  EXPECT_EQ(batches, 50U);
  EXPECT_LE(addresses.size(), slots(run));
  for (const auto& [slot, there] : addresses) EXPECT_LT(slot, slots(run));
}

TEST_P(PipelineOutputSlot, LiveBatchesAreInSlotsOfTheirOwn) {
  SmallRun run(800, GetParam());
  run.options.slots.prefetch = 4;
  run.options.slots.device_slots = 4;
  Pipeline pipeline = run.pipeline();
  std::vector<Batch> held;
  for (int n = 0; n < 4; ++n) held.push_back(pipeline.next());
  for (std::uint64_t n = 0; n < 4; ++n)
    expect_positions(contents(held[n]), run.sampler(), 42, n * 8);
  std::set<std::size_t> used;
  for (const Batch& batch : held) used.insert(batch.slot());
  EXPECT_EQ(used.size(), 4U);
}

TEST(PipelineHostDevice, HandsOutTheHostSlotItself) {
  SmallRun run(80);
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  const Batch batch = pipeline.next(stream);
  expect_positions(contents(batch), run.sampler(), 42,
                   0);  // readable at once, without waiting for the stream
  EXPECT_EQ(pipeline.report().copied_bytes, 0U);
  EXPECT_EQ(pipeline.report().memory.device_bytes, 0U);
}

}  // namespace
}  // namespace millrace
