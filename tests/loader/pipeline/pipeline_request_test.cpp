// SPDX-License-Identifier: Apache-2.0
//
// Tests of `Pipeline::next(NextRequest)`: stream, timeout and micro-batches in any combination, and
// threads that take one batch's micro-batches at once.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::contents;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using testing::HookDevice;
using testing::patience;
using testing::SmallRun;

class PipelineRequest : public ::testing::TestWithParam<bool> {
 protected:
  PipelineRequest() { run.options.slots.micro_batches = 2; }

  SmallRun run{8 * 20, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineRequest, ::testing::Bool());

TEST_P(PipelineRequest, EveryCombinationGivesTheSameBatches) {
  HostStream stream;
  Pipeline pipeline = run.pipeline();
  std::uint64_t number = 0;
  for (Stream* on : {static_cast<Stream*>(nullptr), static_cast<Stream*>(&stream)})
    for (const bool timed : {false, true})
      for (const bool in_micro_batches : {false, true}) {
        NextRequest request{.stream = on, .in_micro_batches = in_micro_batches};
        if (timed) request.timeout = patience;
        const Batch batch = pipeline.next(request);
        ASSERT_TRUE(batch);
        std::size_t samples = 0;
        for (const MicroBatch& part : batch.micro_batches()) samples += part.size();
        EXPECT_EQ(samples, 8U);
        if (on != nullptr) stream.synchronize();
        testing::expect_positions(contents(batch), run.sampler(), 42, 8 * number++);
      }
}

TEST_P(PipelineRequest, OnTheHostAMicroBatchCanBeReadWhenItIsTaken) {
  const auto device = std::make_shared<HookDevice>(GetParam());
  device->hooks().before_copy = [](HostStream& stream) {
    stream.launch([] { std::this_thread::sleep_for(20ms); });
  };
  run.device = device;
  Pipeline pipeline = run.pipeline();
  const Batch batch = pipeline.next({.in_micro_batches = true});
  for (const MicroBatch& part : batch.micro_batches())
    for (std::size_t sample = 0; sample < part.size(); ++sample)
      EXPECT_EQ(part.labels().as<std::int64_t>()[sample],
                testing::MemoryDataset::label_of(part.indices()[sample]));
}

TEST_P(PipelineRequest, ATimeoutCountsForTheFirstMicroBatch) {
  Gate gate;
  run.transform->on_begin = [&gate](const Record&) { EXPECT_TRUE(gate.pass()); };
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  const testing::OpensAtEnd opens(gate);
  EXPECT_EQ(
      error_of([&] { (void)pipeline.next({.timeout = 5ms, .in_micro_batches = true}); }).code(),
      ErrorCode::timeout);
  gate.open();
  EXPECT_TRUE(pipeline.next({.timeout = patience, .in_micro_batches = true}));
}

// The first thread blocks where it makes the stream wait. The second thread has a copy of the
// batch. It must not assume that the stream already waits for the micro-batch.
TEST(PipelineParts, NoThreadGoesAheadOfTheStreamsWaitForAMicroBatch) {
  Gate gate;
  std::atomic<bool> armed = false;
  const auto device = std::make_shared<HookDevice>(true, [&](testing::DeviceCall call) {
    if (armed && call == testing::DeviceCall::wait) {
      EXPECT_TRUE(gate.pass());
    }
  });
  SmallRun run(80);
  run.device = device;
  run.options.slots.micro_batches = 2;
  run.options.epochs = 1;
  Pipeline pipeline = run.pipeline();
  const testing::OpensAtEnd opens(gate);
  const auto stream = device->trainer_stream();
  Batch batch = pipeline.next_in_micro_batches(*stream);
  const MicroBatchRange parts = batch.micro_batches();
  // The pipeline's own copies may reach the gate, too.
  std::atomic<unsigned> through = 0;
  const auto take = [&] {
    (void)*parts.begin();
    ++through;
  };
  armed = true;
  auto first = std::async(std::launch::async, take);
  ASSERT_TRUE(eventually([&] { return gate.arrived() > 0; }));
  auto second = std::async(std::launch::async, take);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(through, 0U);
  gate.open();
  first.get();
  second.get();
}

// The report's base figures are never newer than its current figures.
TEST(PipelineReport, CountsNothingTwiceOrBackwardsBesideRestarts) {
  SmallRun run(80'000);
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  std::atomic<bool> over = false;
  std::jthread trainer([&] {
    while (!over && pipeline.next()) continue;
    over = true;
  });
  std::jthread restarter([&] {
    while (!over) pipeline.restart_report();
  });
  for (int look = 0; look < 300; ++look)
    ASSERT_LE(pipeline.report().samples_made, 80'000U) << "it went below zero";
  over = true;
}

}  // namespace
}  // namespace millrace
