// SPDX-License-Identifier: Apache-2.0
//
// Tests of work that overlaps: making samples, copies, and the trainer's steps.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::best_of_longer;
using testing::eventually;
using testing::Gate;
using testing::HookDevice;
using testing::OpensAtEnd;
using testing::patience;
using testing::SmallRun;
using testing::Stopwatch;

/// A run whose workers sleep for `each` per sample.
SmallRun slow_run(std::chrono::milliseconds each, std::uint64_t records = 4000) {
  SmallRun run(records, true);
  run.options.batch_size = 4;
  run.options.epochs = 0;
  run.workers(2);
  run.transform->on_begin = [each](const Record&) { std::this_thread::sleep_for(each); };
  return run;
}

TEST(PipelineOverlap, NextReturnsBeforeTheStepIsDone) {
  SmallRun run(400, true);
  Pipeline pipeline = run.pipeline();
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  Batch first = pipeline.next(stream, patience);
  stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
  first.reset();
  const Batch second = pipeline.next(stream, patience);
  EXPECT_TRUE(second);
  EXPECT_FALSE(gate.is_open());
}

TEST(PipelineOverlap, BatchesAreMadeAndCopiedDuringAStep) {
  SmallRun run(400, true);
  run.options.slots.prefetch = 3;
  Pipeline pipeline = run.pipeline();
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  Batch first = pipeline.next(stream, patience);
  stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
  first.reset();
  // The second device slot has its batch, and every host slot is full.
  EXPECT_TRUE(eventually([&] { return pipeline.report().samples_made >= (2 + 3) * 8; }));
  EXPECT_TRUE(eventually([&] {
    return pipeline.report().copied_bytes >= 2 * 8 * run.transform->spec().bytes_per_sample();
  }));
  // Reading the next batch on the host shows that its copy did not wait for the step.
  const Batch second = pipeline.next();
  testing::expect_positions(testing::contents(second), run.sampler(), 42, 8);
  EXPECT_FALSE(gate.is_open());
}

/// A device whose copies wait at a gate.
std::shared_ptr<HookDevice> device_with_slow_copies(Gate& gate) {
  const auto device = std::make_shared<HookDevice>(true);
  device->hooks().before_copy = [&gate](HostStream& stream) {
    stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
  };
  return device;
}

TEST(PipelineOverlap, TheStreamWaitsForTheCopyAndTheTrainerDoesNot) {
  Gate gate;
  SmallRun run(400);
  const auto device = device_with_slow_copies(gate);
  run.device = device;
  Pipeline pipeline = run.pipeline();
  const auto stream = device->trainer_stream();
  const OpensAtEnd opens(gate);
  const Batch batch = pipeline.next(*stream, patience);
  EXPECT_FALSE(gate.is_open()) << "next() waited for the copy";
  bool after_the_copy = false;
  stream->host().launch([&] { after_the_copy = gate.is_open(); });
  std::this_thread::sleep_for(20ms);
  gate.open();
  stream->synchronize();
  EXPECT_TRUE(after_the_copy) << "the stream did not wait for the copy";
  testing::expect_positions(testing::contents(batch), run.sampler(), 42, 0);
}

TEST(PipelineOverlap, TheStreamWaitsForThePartsCopy) {
  Gate gate;
  SmallRun run(400);
  run.options.slots.micro_batches = 2;
  const auto device = device_with_slow_copies(gate);
  run.device = device;
  Pipeline pipeline = run.pipeline();
  const auto stream = device->trainer_stream();
  const OpensAtEnd opens(gate);
  const Batch batch = pipeline.next_in_micro_batches(*stream);
  std::size_t after_the_copy = 0;
  for (const MicroBatch& part : batch.micro_batches()) {
    (void)part;
    stream->host().launch([&] { after_the_copy += gate.is_open() ? 1 : 0; });
  }
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(gate.is_open());
  gate.open();
  stream->synchronize();
  EXPECT_EQ(after_the_copy, 2U);
}

// A step takes 30 ms, and so does making a batch. One after the other, 12 batches take at least 720
// ms, since all of it is sleeping. If they overlap, they take half of that. Longer times are tried,
// too, since a busy machine can only make it slower.
TEST(PipelineOverlap, MakingHidesBehindSteps) {
  constexpr int batches = 12;
  const auto seconds = [](int factor) {
    SmallRun run = slow_run(15ms * factor);
    Pipeline pipeline = run.pipeline();
    HostStream stream;
    pipeline.next(stream).reset();
    const Stopwatch time;
    for (int n = 0; n < batches; ++n) {
      const Batch batch = pipeline.next(stream);
      stream.step(30ms * factor);
    }
    stream.synchronize();
    const double took = time.seconds() / factor;
    EXPECT_EQ(stream.steps().steps, static_cast<std::uint64_t>(batches));
    return took;
  };
  const double best = best_of_longer(seconds, [](double took) { return took < 0.60; });
  EXPECT_LT(best, 0.60) << "making and steps follow one another";
}

TEST(PipelineOverlap, ADeviceFedFastEnoughIsNeverIdle) {
  const auto idle_share = [](int factor) {
    SmallRun run(4000, true);
    run.options.epochs = 0;
    Pipeline pipeline = run.pipeline();
    HostStream stream;
    pipeline.next(stream).reset();
    stream.step(10ms * factor);
    for (int n = 0; n < 30; ++n) {
      const Batch batch = pipeline.next(stream);
      stream.step(10ms * factor);
    }
    stream.synchronize();
    const StepStatistics steps = stream.steps();
    return static_cast<double>(steps.idle.count()) /
           static_cast<double>((steps.busy + steps.idle).count());
  };
  EXPECT_LT(best_of_longer(idle_share, [](double idle) { return idle < 0.05; }), 0.05);
}

TEST(PipelineOverlap, WorkersMakeSamplesOfABatchAtTheSameTime) {
  for (const unsigned workers : {2U, 4U}) {
    testing::Meeting meeting(workers);
    std::atomic<unsigned> met{0};
    SmallRun run(8);
    run.workers(workers);
    run.transform->on_begin = [&](const Record&) { met += meeting.meet() ? 1 : 0; };
    Pipeline pipeline = run.pipeline();
    EXPECT_TRUE(pipeline.next());
    EXPECT_EQ(met, 8U) << workers << " workers did not make as many samples at the same time";
  }
}

TEST(PipelineOverlap, APausedRuntimeMakesNothing) {
  SmallRun run(400);
  run.workers(2);
  run.options.runtime->set_concurrency(0);
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  EXPECT_EQ(testing::error_of([&] { (void)pipeline.next(stream, 50ms); }).code(),
            ErrorCode::timeout);
  EXPECT_EQ(run.transform->begun(), 0U);
  run.options.runtime->set_concurrency(2);
  const Batch batch = pipeline.next(stream, patience);
  EXPECT_EQ(batch.number(), 0U) << "the call that timed out must not have taken a batch";
}

class PipelineParts : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineParts, ::testing::Bool());

/// Blocks at the gate when it makes one of the records.
auto blocks_at(const std::vector<std::uint64_t>& records, Gate& gate) {
  return [records, &gate](const Record& record) {
    if (std::find(records.begin(), records.end(), record.index()) != records.end()) {
      EXPECT_TRUE(gate.pass());
    }
  };
}

TEST_P(PipelineParts, ComeBeforeTheBatchIsMade) {
  SmallRun run(16, GetParam());
  run.options.order = Order::sequential();
  run.options.slots.micro_batches = 2;
  run.workers(2);
  Gate gate;
  run.transform->on_begin = blocks_at({4, 5, 6, 7}, gate);
  Pipeline pipeline = run.pipeline();
  const OpensAtEnd opens(gate);
  HostStream stream;
  const Batch batch = pipeline.next_in_micro_batches(stream);
  ASSERT_TRUE(batch);
  const MicroBatchRange parts = batch.micro_batches();
  ASSERT_EQ(parts.size(), 2U);
  auto iterator = parts.begin();
  const MicroBatch first = *iterator;
  stream.synchronize();
  EXPECT_FALSE(gate.is_open());
  const auto labels = first.labels().as<std::int64_t>();
  ASSERT_EQ(labels.size(), 4U);
  for (std::size_t sample = 0; sample < 4; ++sample)
    EXPECT_EQ(labels[sample], testing::MemoryDataset::label_of(sample));
  EXPECT_THROW((void)batch.images(), Error);
  std::atomic<bool> opened{false};
  std::jthread opener([&] {
    std::this_thread::sleep_for(30ms);
    opened = true;
    gate.open();
  });
  const MicroBatch second = *++iterator;
  EXPECT_TRUE(opened) << "the second part came before its samples were made";
  stream.synchronize();
  EXPECT_EQ(second.labels().as<std::int64_t>()[3], testing::MemoryDataset::label_of(7));
  EXPECT_EQ(batch.images().shape[0], 8U);
}

TEST_P(PipelineParts, ABatchAsAWholeWaitsForThemAll) {
  SmallRun run(16, GetParam());
  run.options.order = Order::sequential();
  run.options.slots.micro_batches = 4;
  run.workers(2);
  Gate gate;
  run.transform->on_begin = blocks_at({7}, gate);
  Pipeline pipeline = run.pipeline();
  const OpensAtEnd opens(gate);
  HostStream stream;
  EXPECT_EQ(testing::error_of([&] { (void)pipeline.next(stream, 50ms); }).code(),
            ErrorCode::timeout);
  gate.open();
  EXPECT_EQ(pipeline.next(stream, patience).number(), 0U);
}

// A batch is released before its micro-batches arrive. Workers that still make them must not write
// into the slot's next batch.
TEST_P(PipelineParts, ABatchMayGoBeforeItsPartsCame) {
  for (const std::size_t slots :
       {1U, 2U}) {  // with one slot a lost one is noticed, with two an early reuse
    SmallRun run(64, GetParam());
    run.options.order = Order::sequential();
    run.options.slots.micro_batches = 2;
    run.options.slots.prefetch = slots;
    run.options.slots.device_slots = slots;
    run.workers(2);
    Gate gate;
    run.transform->on_begin = blocks_at({6}, gate);
    Pipeline pipeline = run.pipeline();
    const OpensAtEnd opens(gate);
    HostStream stream;
    Batch batch = pipeline.next_in_micro_batches(stream);
    ASSERT_TRUE(batch);
    ASSERT_TRUE(eventually([&] { return gate.arrived() == 1; }));
    batch.reset();
    std::this_thread::sleep_for(100ms);  // enough for a slot that is used too early
    gate.open();
    std::uint64_t number = 1;
    while (const Batch next = pipeline.next(stream, patience)) {
      stream.synchronize();
      EXPECT_EQ(next.number(), number);
      testing::expect_positions(testing::contents(next), run.sampler(), 42, number * 8);
      ++number;
    }
    EXPECT_EQ(number, 8U);
  }
}

TEST_P(PipelineParts, ABatchMayGoWithOnlySomePartsTaken) {
  SmallRun run(160, GetParam());
  run.options.slots.micro_batches = 4;
  run.options.slots.prefetch = 2;
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  std::uint64_t number = 0;
  for (; const Batch batch = pipeline.next_in_micro_batches(stream); ++number) {
    EXPECT_EQ(batch.number(), number);
    std::size_t taken = 0;
    for (const MicroBatch& part : batch.micro_batches()) {
      stream.synchronize();
      const auto labels = part.labels().as<std::int64_t>();
      for (std::size_t sample = 0; sample < part.size(); ++sample)
        EXPECT_EQ(labels[sample], testing::MemoryDataset::label_of(
                                      run.sampler()(number * 8 + part.first() + sample)));
      if (++taken == number % 5) break;
    }
  }
  EXPECT_EQ(number, 20U);
}

}  // namespace
}  // namespace millrace
