// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations: in steady state the pipeline takes no pinned and no device memory, and nothing of a picture's size from the heap.
// This program has a malloc of its own, so these tests are in no other.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "fake_device.h"
#include "small_run.h"

#if !defined(MILLRACE_TSAN) && !defined(MILLRACE_ASAN) && defined(__GLIBC__)
#define MILLRACE_COUNTS_MALLOC 1
#endif

namespace {

constexpr std::size_t picture_bytes = 32 * 1024;
std::atomic<std::uint64_t> large_allocations{0};
std::atomic<std::size_t> largest{0};

[[maybe_unused]] void count(std::size_t bytes) {
  if (bytes < picture_bytes) return;
  ++large_allocations;
  for (std::size_t seen = largest; seen < bytes && !largest.compare_exchange_weak(seen, bytes);) continue;
}

}  // namespace

#if defined(MILLRACE_COUNTS_MALLOC)
// glibc lets a program replace malloc and offers its own under other names.
// Source: the glibc manual, "Replacing malloc".
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t members, std::size_t bytes) {
  count(members * bytes);
  return __libc_calloc(members, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count(bytes);
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

namespace millrace {
namespace {

using testing::DeviceCall;
using testing::HookDevice;
using testing::SmallRun;

/// Samples of a picture's size, so that any buffer for one is seen.
SmallRun picture_run(const std::shared_ptr<Device>& device) {
  SmallRun run(10'000);
  run.device = device;
  run.options.epochs = 0;
  run.transform = std::make_shared<testing::StampTransform>(2 * picture_bytes);
  run.options.batch_size = 4;
  run.options.micro_batches = 2;
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

TEST_P(PipelineMemory, TheHeapGivesNoPictureInSteadyState) {
#if !defined(MILLRACE_COUNTS_MALLOC)
  GTEST_SKIP() << "needs a malloc of its own, which a sanitizer has already or which this C library does not allow";
#endif
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{GetParam()});
  const SmallRun run = picture_run(device);
  HostStream stream;
  Pipeline pipeline = run.pipeline();
  for (int n = 0; n < 20; ++n) {
    const Batch batch = pipeline.next(stream);
    stream.step(std::chrono::microseconds(100));
  }
  const std::uint64_t before = large_allocations;
  const std::uint64_t of_device = device->allocations();
  largest = 0;
  for (int n = 0; n < 60; ++n) {
    const Batch batch = pipeline.next(stream);
    stream.step(std::chrono::microseconds(100));
  }
  EXPECT_EQ(large_allocations - before, 0U) << "the largest had " << largest << " bytes";
  EXPECT_EQ(device->allocations(), of_device);
}

TEST(CountingMalloc, Counts) {
#if !defined(MILLRACE_COUNTS_MALLOC)
  GTEST_SKIP() << "needs a malloc of its own, which a sanitizer has already or which this C library does not allow";
#endif
  const std::uint64_t before = large_allocations;
  const auto picture = std::make_unique<std::vector<std::uint8_t>>(picture_bytes);
  EXPECT_EQ(picture->size(), picture_bytes);
  EXPECT_EQ(large_allocations, before + 1);
}

}  // namespace
}  // namespace millrace
