// SPDX-License-Identifier: Apache-2.0
//
// Tests that count allocations: in steady state the pipeline allocates no pinned and no device
// memory, and no block of a picture's size from the heap.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "loader/pipeline/slots/small_queues.h"
#include "support/counting_malloc.h"
#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::DeviceCall;
using testing::HookDevice;
using testing::large_allocations;
using testing::picture_bytes;
using testing::SmallRun;

/// Samples of a picture's size, so that any buffer for one counts.
SmallRun picture_run(const std::shared_ptr<Device>& device) {
  SmallRun run(10'000);
  run.device = device;
  run.options.epochs = 0;
  run.transform = std::make_shared<testing::StampTransform>(2 * picture_bytes);
  run.options.batch_size = 4;
  run.options.slots.micro_batches = 2;
  return run;
}

class PipelineMemory : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineMemory, ::testing::Bool());

TEST_P(PipelineMemory, TheDeviceAllocatesNothingAfterTheStart) {
  const auto device = std::make_shared<HookDevice>(GetParam());
  const SmallRun run = picture_run(device);
  const auto stream = device->trainer_stream();
  Pipeline pipeline = run.pipeline();
  const testing::DeviceHooks& hooks = device->hooks();
  const std::uint64_t host = hooks.count(DeviceCall::allocate_host);
  const std::uint64_t own = hooks.count(DeviceCall::allocate_device);
  EXPECT_GT(host, 0U);
  EXPECT_EQ(own > 0, GetParam());
  for (int n = 0; n < 10; ++n) (void)pipeline.next(*stream);
  const std::uint64_t streams = hooks.count(DeviceCall::make_stream);
  const std::uint64_t events = hooks.count(DeviceCall::make_event);
  for (int n = 0; n < 60; ++n) (void)pipeline.next(*stream);
  EXPECT_EQ(hooks.count(DeviceCall::allocate_host), host);
  EXPECT_EQ(hooks.count(DeviceCall::allocate_device), own);
  EXPECT_EQ(hooks.count(DeviceCall::make_stream), streams);
  EXPECT_EQ(hooks.count(DeviceCall::make_event), events);
}

TEST_P(PipelineMemory, ItsLimitsAreKnownBeforeTheFirstBatch) {
  SmallRun run = picture_run(std::make_shared<HookDevice>(GetParam()));
  const auto transform = std::make_shared<testing::StampTransform>(2 * picture_bytes);
  transform->scratch_per_worker = 1000;
  run.transform = transform;
  run.workers(3);
  run.options.index_bytes = 5000;
  Pipeline pipeline = run.pipeline();
  const MemoryReport memory = pipeline.memory();
  EXPECT_EQ(memory.scratch_limit_bytes, 3000U);
  EXPECT_EQ(memory.index_limit_bytes, 5000U);
  EXPECT_EQ(memory.cache_limit_bytes, 0U);
  EXPECT_GE(memory.pinned_bytes, 4 * 4 * 2 * picture_bytes);
  EXPECT_EQ(memory.limit_bytes(), memory.pinned_bytes + 8000);
  EXPECT_EQ(pipeline.report().memory.limit_bytes(), memory.limit_bytes());
  EXPECT_THAT(pipeline.report().warnings,
              ::testing::Not(::testing::Contains(::testing::HasSubstr("may take up to"))));
}

TEST_P(PipelineMemory, MoreThanTheProcessMayUseIsAWarning) {
  SmallRun run = picture_run(std::make_shared<HookDevice>(GetParam()));
  run.workers(1);
  run.options.index_bytes = std::size_t{1} << 60;
  EXPECT_THAT(run.pipeline().report().warnings,
              ::testing::Contains(::testing::HasSubstr("the run may take up to 11529215")));
}

TEST_P(PipelineMemory, TheNextPipelineAllocatesNoHostMemory) {
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{GetParam()});
  SmallRun run = picture_run(device);
  run.workers(2);
  std::size_t pinned_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t of_first = 0;
  for (int n = 0; n < 3; ++n) {
    run.options.batch_size = n == 2 ? 2 : 4;  // the last run needs less
    run.options.debug.poison_slots = n > 0;   // what the one before it left counts for nothing
    HostStream stream;
    Pipeline pipeline = run.pipeline();
    for (int batch = 0; batch < 10; ++batch) EXPECT_TRUE(pipeline.next(stream));
    const MemoryReport memory = pipeline.report().memory;
    if (n == 0) pinned_bytes = memory.pinned_bytes;
    EXPECT_EQ(memory.kept_host_bytes > 0, n == 2);
    EXPECT_LE(memory.pinned_bytes + memory.kept_host_bytes, pinned_bytes);
    const std::uint64_t taken =
        device->allocations() - std::exchange(allocations, device->allocations());
    if (n == 0) of_first = taken;
    if (n > 0) {
      EXPECT_EQ(taken, of_first - run.options.slots.prefetch) << "all but the host slots";
    }
  }
  EXPECT_EQ(run.options.runtime->kept_host_bytes(), pinned_bytes);
}

TEST_P(PipelineMemory, TheHeapGivesNoPictureInSteadyState) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{GetParam()});
  const SmallRun run = picture_run(device);
  HostStream stream;
  Pipeline pipeline = run.pipeline();
  for (int n = 0; n < 20; ++n) {
    const Batch batch = pipeline.next(stream);
    stream.step(std::chrono::microseconds(100));
  }
  const std::uint64_t before = large_allocations();
  const std::uint64_t of_device = device->allocations();
  for (int n = 0; n < 60; ++n) {
    const Batch batch = pipeline.next(stream);
    stream.step(std::chrono::microseconds(100));
  }
  EXPECT_EQ(large_allocations() - before, 0U);
  EXPECT_EQ(device->allocations(), of_device);
}

TEST(CountingMalloc, Counts) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  const std::uint64_t before = large_allocations();
  const auto picture = std::make_unique<std::vector<std::uint8_t>>(picture_bytes);
  EXPECT_EQ(picture->size(), picture_bytes);
  EXPECT_EQ(large_allocations(), before + 1);
}

// Without memory the queues still close with an error, which says that memory is missing.
TEST(SlotQueues, FailsWithoutMemory) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  const testing::SmallQueues small;
  try {
    throw std::bad_alloc();
  } catch (...) {
    const testing::NoMemory none;
    small.queues->fail("make");
  }
  EXPECT_THAT(testing::error_of([&] { small.queues->throw_if_closed(); }).what(),
              ::testing::HasSubstr("no memory left"));
}

}  // namespace
}  // namespace millrace
