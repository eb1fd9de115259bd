// SPDX-License-Identifier: Apache-2.0
#include "device/event_clock.h"

#include <gmock/gmock.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "stand_in/stand_in_cuda.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace stand_in = testing::stand_in;

/// Rounding of floats, and half of the wait for the first anchor.
constexpr auto tolerance = 50ms;

class EventClocks : public ::testing::Test {
 protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { stand_in::reset(); }
};

TEST_F(EventClocks, TellWhenAStreamPassedAnEvent) {
  CudaDevice device;
  const testing::Stopwatch making;
  const auto event = device.make_timed_event();
  const auto within = tolerance + making.elapsed() / 2;  // the first anchor was passed by then
  const auto stream = device.make_stream();
  EXPECT_FALSE(event->passed_at()) << "it was never recorded";
  const Clock::time_point before = Clock::now();
  stand_in::launch(dynamic_cast<CudaStream&>(*stream).handle(),
                   [] { std::this_thread::sleep_for(30ms); });
  stream->record(*event);
  const auto early = event->passed_at();
  if (!event->complete()) {
    EXPECT_FALSE(early);
  }
  ASSERT_TRUE(event->wait(testing::patience));
  const auto passed = event->passed_at();
  ASSERT_TRUE(passed);
  EXPECT_GE(*passed, before + 30ms - within);
  EXPECT_LE(*passed, Clock::now() + within);
}

TEST_F(EventClocks, KeepTheTimeOverTheirRenewals) {
  // The largest distance of a time from those in which the stream passed the event.
  const auto run = [] {
    EventClock clock(0, 1ms);
    CudaStream stream(0);
    const EventHandle event = make_event_handle(cudaEventDefault);
    const std::uint64_t before = stand_in::calls("cudaEventRecord");
    Clock::duration most{};
    for (int n = 0; n < 20; ++n) {
      EXPECT_EQ(cudaEventRecord(event.get(), stream.handle()), cudaSuccess);
      const Clock::time_point recorded = Clock::now();
      stand_in::drain();
      const Clock::time_point drained = Clock::now();
      const Clock::time_point passed = clock.time_of(event.get()).value();
      most = std::max({most, recorded - passed, passed - drained});
      std::this_thread::sleep_for(2ms);
    }
    EXPECT_GT(stand_in::calls("cudaEventRecord") - before, 25U) << "the anchor was never renewed";
    return most;
  };
  const auto in_time = [](Clock::duration most) { return most <= tolerance; };
  EXPECT_LE(testing::best_of_three(run, in_time), tolerance);
}

// The anchors' errors would add up if each anchor were not measured between two readings of the
// host's clock.
TEST_F(EventClocks, KeepTheHostsTimeThoughTheDevicesClockGoesFaster) {
  stand_in::skew_clock(5);
  const auto run = [] {
    EventClock clock(0, 1ms);
    CudaStream stream(0);
    const EventHandle event = make_event_handle(cudaEventDefault);
    std::optional<Clock::time_point> passed;
    for (int n = 0; n < 100; ++n) {
      EXPECT_EQ(cudaEventRecord(event.get(), stream.handle()), cudaSuccess);
      stand_in::drain();
      passed = clock.time_of(event.get());
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(passed);
    return passed.value_or(Clock::time_point::max()) - Clock::now();
  };
  const auto in_time = [](Clock::duration ahead) { return ahead <= tolerance; };
  EXPECT_LE(testing::best_of_three(run, in_time), tolerance);
}

// Like in a run, the clock is read once per batch. An anchor's time must not drift until the next
// reading.
TEST_F(EventClocks, KeepTheTimeBetweenLooks) {
  static constexpr auto batch = 200ms;
  stand_in::skew_clock(1.2);
  const auto run = [] {
    EventClock clock(0, 1ms);
    CudaStream stream(0);
    const EventHandle event = make_event_handle(cudaEventDefault);
    Clock::duration most{};
    for (int n = 0; n < 10; ++n) {
      std::this_thread::sleep_for(batch);
      EXPECT_EQ(cudaEventRecord(event.get(), stream.handle()), cudaSuccess);
      stand_in::drain();
      const Clock::time_point drained = Clock::now();
      most = std::max(most, clock.time_of(event.get()).value() - drained);
    }
    return most;
  };
  const auto in_time = [](Clock::duration most) { return most < batch / 2; };
  EXPECT_LT(testing::best_of_three(run, in_time), batch / 2);
}

// The pipeline's own streams have a low priority: a conversion with a higher one would make the GPU
// reserve room.
TEST_F(EventClocks, GoBeforeTheTrainersWork) {
  const CudaStream trainer(0);
  CudaDevice device;
  const auto of_a_pipeline = device.make_stream();
  const EventClock clock(0);
  EXPECT_THAT(stand_in::stream_priorities(), ::testing::UnorderedElementsAre(0, 0, -5));
}

// Polling without a pause would occupy a core while the device does not answer.
TEST_F(EventClocks, GiveUpOnADeviceThatDoesNotAnswer) {
  constexpr auto patience = 200ms;
  constexpr std::uint64_t max_asked = 20'000;
  stand_in::fail("cuEventQuery", 1, cudaErrorNotReady, true);
  EXPECT_THAT([&] { EventClock(0, EventClock::default_renewal, patience); },
              ::testing::ThrowsMessage<Error>(::testing::AllOf(
                  ::testing::HasSubstr("cuda:0: the event that sets the device's clock"),
                  ::testing::HasSubstr("GPU hangs"))));
  EXPECT_LT(stand_in::calls("cuEventQuery"), max_asked);
}

TEST_F(EventClocks, ThrowAnErrorOfTheDriver) {
  CudaDevice device;
  const auto event = device.make_timed_event();
  const auto stream = device.make_stream();
  stream->record(*event);
  ASSERT_TRUE(event->wait(testing::patience));
  stand_in::fail("cuEventElapsedTime", 1, cudaErrorLaunchFailure);
  EXPECT_THAT([&] { (void)event->passed_at(); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("cuEventElapsedTime failed: ")));
  EXPECT_TRUE(event->passed_at());
}

TEST_F(EventClocks, OrdinaryEventsDoNotTell) {
  CudaDevice device;
  const auto event = device.make_event();
  const auto stream = device.make_stream();
  stream->record(*event);
  ASSERT_TRUE(event->wait(testing::patience));
  EXPECT_FALSE(event->passed_at());
}

}  // namespace
}  // namespace millrace
