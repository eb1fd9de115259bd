// SPDX-License-Identifier: Apache-2.0
//
// Tests of forbid_blocking_calls: in steady state, nothing on the batch path allocates memory,
// streams or events, or waits for the device.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "loader/pipeline/image_run.h"
#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::DeviceCall;
using testing::error_of;
using ::testing::HasSubstr;
using testing::HookDevice;
using testing::patience;
using testing::SmallRun;

constexpr int warm_up = 2 + 2;

/// Batches of eight from a run that forbids blocking calls, with two host slots and two device
/// slots.
SmallRun watched_run(bool copies = true) {
  SmallRun run(4000, copies);
  run.options.slots.prefetch = 2;
  run.options.slots.device_slots = 2;
  run.options.debug.forbid_blocking_calls = true;
  return run;
}

/// A blocking call, with its name in the error.
struct Blocking {
  const char* name;
  std::function<void(HostDevice&, HostStream&)> call;
};

const std::vector<Blocking>& blocking_calls() {
  static const std::vector<Blocking> calls{
      {"HostDevice::allocate_host",
       [](HostDevice& device, HostStream&) { (void)device.allocate_host(4096, NumaNode{}); }},
      {"HostDevice::allocate_device",
       [](HostDevice& device, HostStream&) { (void)device.allocate_device(4096); }},
      {"HostDevice::make_stream",
       [](HostDevice& device, HostStream&) { (void)device.make_stream(); }},
      {"HostDevice::make_event",
       [](HostDevice& device, HostStream&) { (void)device.make_event(); }},
      {"HostStream::synchronize", [](HostDevice&, HostStream& stream) { stream.synchronize(); }}};
  return calls;
}

/// Where the call is made, and the stage that the error then names.
enum class Where { read, prefetch, transform, copy, trainer };

const char* stage_of(Where where) {
  switch (where) {
    case Where::prefetch:
      return "plan";
    case Where::copy:
      return "upload";
    default:
      return "make";
  }
}

class ForbidBlockingCalls : public ::testing::TestWithParam<std::tuple<std::size_t, Where>> {
 protected:
  const Blocking& blocking() const { return blocking_calls().at(std::get<0>(GetParam())); }
  Where where() const { return std::get<1>(GetParam()); }

  /// A run that makes the call once it is armed.
  SmallRun planted() {
    SmallRun run = watched_run();
    const auto device = std::make_shared<HookDevice>(true);
    run.device = device;
    const auto plant = [this](Where here) {
      if (armed_ && here == where()) blocking().call(other_device_, other_stream_);
    };
    run.dataset->on_read = [plant](std::uint64_t) { plant(Where::read); };
    run.dataset->on_prefetch = [plant](std::span<const std::uint64_t>) { plant(Where::prefetch); };
    run.transform->on_begin = [plant](const Record&) { plant(Where::transform); };
    device->hooks().on_call = [plant](DeviceCall call) {
      if (call == DeviceCall::copy) plant(Where::copy);
    };
    return run;
  }

  std::atomic<bool> armed_{false};
  HostDevice other_device_;
  HostStream other_stream_;
};
INSTANTIATE_TEST_SUITE_P(Calls, ForbidBlockingCalls,
                         ::testing::Combine(::testing::Range<std::size_t>(0, 5),
                                            ::testing::Values(Where::read, Where::prefetch,
                                                              Where::transform, Where::copy,
                                                              Where::trainer)));

TEST_P(ForbidBlockingCalls, NamesTheCall) {
  const SmallRun run = planted();
  const auto device = std::dynamic_pointer_cast<HookDevice>(run.device);
  const auto stream = device->trainer_stream();
  Pipeline pipeline = run.pipeline();
  for (int n = 0; n < warm_up; ++n) ASSERT_TRUE(pipeline.next(*stream, patience));
  armed_ = true;
  if (where() == Where::trainer) {  // between its calls a trainer may block
    for (int n = 0; n < 20; ++n) {
      const Batch batch = pipeline.next(*stream, patience);
      blocking().call(other_device_, other_stream_);
    }
    return;
  }
  // The prefetch thread may make the call late.
  const Error error = error_of([&] {
    for (const testing::Stopwatch time; time.elapsed() < patience;)
      (void)pipeline.next(*stream, patience);
  });
  EXPECT_EQ(error.code(), ErrorCode::device);
  EXPECT_THAT(error.what(), HasSubstr(blocking().name));
  EXPECT_EQ(error.stage(), stage_of(where()));
  EXPECT_STREQ(error_of([&] { (void)pipeline.next(*stream); }).what(), error.what());
}

TEST_P(ForbidBlockingCalls, LetsItBeWithoutTheOption) {
  SmallRun run = planted();
  run.options.debug.forbid_blocking_calls = false;
  armed_ = true;
  HookDevice& device = dynamic_cast<HookDevice&>(*run.device);
  const auto stream = device.trainer_stream();
  Pipeline pipeline = run.pipeline();
  for (int n = 0; n < warm_up + 4; ++n) ASSERT_TRUE(pipeline.next(*stream, patience));
}

TEST(ForbidBlockingCallsOnce, LetsThemBeInTheWarmUp) {
  HostDevice other;
  SmallRun run = watched_run();
  std::atomic<int> reads{0};
  run.dataset->on_read = [&](std::uint64_t) {
    if (++reads <= 8) (void)other.allocate_device(64);
  };
  HostStream stream;
  Pipeline pipeline = run.pipeline();
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(pipeline.next(stream, patience));
}

// Whole runs with every way of taking batches: none of them blocks.
TEST(ForbidBlockingCallsOnce, AnInnocentRunPasses) {
  for (const bool copies : {false, true})
    for (const std::size_t micro_batches : {1U, 3U})
      for (const bool converts : {false, true}) {
        testing::ImageRun run(240);
        run.device = std::make_shared<HostDevice>(HostDeviceOptions{.copies = copies});
        run.options.debug.forbid_blocking_calls = true;
        run.options.slots.micro_batches = micro_batches;
        if (converts) run.options.conversion = Conversion{};
        HostStream stream;
        HostStream second;
        Pipeline pipeline = run.pipeline();
        std::size_t batches = 0;
        for (;; ++batches) {
          const bool in_micro_batches = batches % 3 == 0;
          const Batch batch =
              in_micro_batches ? pipeline.next_in_micro_batches(stream) : pipeline.next(stream);
          if (!batch) break;
          if (in_micro_batches) {
            for (const MicroBatch& part : batch.micro_batches()) (void)part;
          }
          batch.record_stream(second);
          stream.step(std::chrono::microseconds(200));
        }
        EXPECT_EQ(batches, 30U);
      }
}

TEST(ForbidBlockingCallsOnce, ABatchOnAFurtherStreamAfterTheWarmUpNeedsAnEvent) {
  const SmallRun run = watched_run();
  HostStream stream;
  HostStream late;
  Pipeline pipeline = run.pipeline();
  for (int n = 0; n < warm_up; ++n) ASSERT_TRUE(pipeline.next(stream, patience));
  const Batch batch = pipeline.next(stream, patience);
  const Error error = error_of([&] { batch.record_stream(late); });
  EXPECT_THAT(error.what(), HasSubstr("HostDevice::make_event"));
  EXPECT_STREQ(error_of([&] { (void)pipeline.next(stream); }).what(), error.what());
}

}  // namespace
}  // namespace millrace
