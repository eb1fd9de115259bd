// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/host_device.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "support/fake_device.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::Gate;
using testing::HookDevice;
using testing::OpensAtEnd;
using testing::patience;
using testing::Stopwatch;

nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

TEST(HostDevice, GivesAlignedWritableMemory) {
  HostDevice device;
  const Memory host = device.allocate_host(100'001, read_topology().nodes.front());
  const Memory own = device.allocate_device(12'345);
  EXPECT_EQ(device.allocations(), 2U);
  EXPECT_EQ(host.bytes(), 100'001U);
  EXPECT_EQ(own.bytes(), 12'345U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host.data()) % 4096, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own.data()) % 256, 0U);
  std::memset(host.data(), 1, host.bytes());
  std::memset(own.data(), 2, own.bytes());
}

TEST(HostDevice, SaysWhatItIs) {
  EXPECT_EQ(HostDevice().name(), "host");
  EXPECT_FALSE(HostDevice().copies());
  EXPECT_TRUE(HostDevice({.copies = true}).copies());
}

TEST(HostStream, CopiesWhenItReachesTheCopy) {
  int source = 1;
  int destination = 0;
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  stream.launch([&] { EXPECT_TRUE(gate.pass()); });
  stream.copy(&destination, &source, sizeof source);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(destination, 0);
  source = 2;
  gate.open();
  stream.synchronize();
  EXPECT_EQ(destination, 2);
}

TEST(HostStream, ACopyBehindAStepComesAfterIt) {
  int source = 1;
  std::atomic<bool> copied{false};
  HostStream stream;
  const Stopwatch time;
  int destination = 0;
  stream.step(60ms);
  stream.copy(&destination, &source, sizeof source);
  nanoseconds at{};
  stream.launch([&] {
    at = time.elapsed();
    copied = destination == 1;
  });
  stream.synchronize();
  EXPECT_TRUE(copied);
  EXPECT_GE(at, 60ms);
}

TEST(HostStream, DoesItsWorkInOrder) {
  HostStream stream;
  std::vector<int> order;
  for (int n = 0; n < 500; ++n) stream.launch([&order, n] { order.push_back(n); });
  stream.synchronize();
  ASSERT_EQ(order.size(), 500U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

struct CountWork {
  static constexpr const char* kernel = "count";
  int* count = nullptr;
  int by = 0;
  void run_on_host() const { *count += by; }
};

struct OtherWork {
  static constexpr const char* kernel = "count";
  void run_on_host() const {}
};

TEST(HostStream, DoesAnyKernelsWorkByItsReference) {
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  int count = 1;
  stream.launch([&] { EXPECT_TRUE(gate.pass()); });
  {
    CountWork work{.count = &count, .by = 4};
    stream.launch(work);
    work.by = 1000;  // the stream has its own copy
  }
  EXPECT_EQ(count, 1);
  gate.open();
  stream.synchronize();
  EXPECT_EQ(count, 5);
}

TEST(DeviceWork, IsOfOneKind) {
  const CountWork arguments;
  const DeviceWork work = arguments;
  EXPECT_EQ(work.as<CountWork>(), &arguments);
  EXPECT_EQ(work.as<OtherWork>(), nullptr);
  EXPECT_STREQ(work.kernel(), "count");
}

TEST(HostStream, CallsReturnBeforeTheWorkIsDone) {
  Gate gate;
  HostDevice device;
  const auto event = device.make_event();
  HostStream stream;
  const OpensAtEnd opens(gate);
  stream.launch([&] { EXPECT_TRUE(gate.pass()); });
  int source = 1;
  int destination = 0;
  stream.copy(&destination, &source, sizeof source);
  stream.step(1ms);
  stream.record(*event);
  stream.wait(*event);
  EXPECT_FALSE(event->complete());
  EXPECT_FALSE(gate.is_open());
  gate.open();
  EXPECT_TRUE(event->wait(patience));
}

TEST(HostStream, TakesWorkFromManyThreads) {
  HostStream stream;
  int done = 0;  // only the stream's thread counts
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int n = 0; n < 200; ++n) stream.launch([&done] { ++done; });
      });
  }
  stream.synchronize();
  EXPECT_EQ(done, 800);
}

TEST(HostStream, FinishesItsWorkBeforeItGoes) {
  int done = 0;
  {
    HostStream stream;
    stream.step(20ms);
    for (int n = 0; n < 100; ++n) stream.launch([&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(HostStream, RefusesAnEventOfAnotherDevice) {
  HookDevice other(true);
  const auto event = other.make_event();
  HostStream stream;
  try {
    stream.record(*event);
    FAIL() << "a foreign event was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
  }
  EXPECT_THROW(stream.wait(*event), Error);
}

TEST(HostEvent, CountsAsCompleteUntilItIsRecorded) {
  HostDevice device;
  const auto event = device.make_event();
  EXPECT_TRUE(event->complete());
  EXPECT_TRUE(event->wait(0ns));
  HostStream stream;
  bool passed = false;
  stream.wait(*event);
  stream.launch([&passed] { passed = true; });
  stream.synchronize();
  EXPECT_TRUE(passed);
}

TEST(HostEvent, IsCompleteWhenItsStreamHasPassedIt) {
  HostDevice device;
  const auto event = device.make_event();
  Gate gate;
  const auto stream = device.make_stream();
  const OpensAtEnd opens(gate);
  dynamic_cast<HostStream&>(*stream).launch([&] { EXPECT_TRUE(gate.pass()); });
  stream->record(*event);
  EXPECT_FALSE(event->complete());
  const Stopwatch time;
  EXPECT_FALSE(event->wait(50ms));
  EXPECT_GE(time.elapsed(), 50ms);
  gate.open();
  EXPECT_TRUE(event->wait(patience));
  EXPECT_TRUE(event->complete());
}

TEST(HostEvent, OrdersStreams) {
  HostDevice device;
  const auto event = device.make_event();
  Gate gate;
  HostStream first;
  HostStream second;
  const OpensAtEnd opens(gate);
  first.launch([&] { EXPECT_TRUE(gate.pass()); });
  first.record(*event);
  bool after_the_gate = false;
  second.wait(*event);
  second.launch([&] { after_the_gate = gate.is_open(); });
  std::this_thread::sleep_for(20ms);
  gate.open();
  second.synchronize();
  EXPECT_TRUE(after_the_gate);
}

// As with CUDA: recording again moves the event for later waits and queries. Earlier waits keep
// theirs.
TEST(HostEvent, RecordedAgainLeavesEarlierWaitsAlone) {
  HostDevice device;
  const auto event = device.make_event();
  const auto passed = device.make_event();
  Gate first_gate;
  Gate second_gate;
  HostStream first;
  HostStream second;
  const OpensAtEnd opens_first(first_gate);
  const OpensAtEnd opens_second(second_gate);
  first.record(*event);
  second.launch([&] { EXPECT_TRUE(second_gate.pass()); });
  second.wait(*event);
  second.record(*passed);
  first.launch([&] { EXPECT_TRUE(first_gate.pass()); });
  first.record(*event);
  EXPECT_FALSE(event->complete());
  second_gate.open();
  EXPECT_TRUE(passed->wait(patience))
      << "a wait followed an event that was recorded again after it";
  EXPECT_FALSE(event->complete());
  first_gate.open();
  EXPECT_TRUE(event->wait(patience));
}

TEST(HostEvent, MayGoBeforeItsWorkIsDone) {
  HostDevice device;
  Gate gate;
  HostStream first;
  HostStream second;
  const OpensAtEnd opens(gate);
  bool after_the_gate = false;
  {
    const auto event = device.make_event();
    first.launch([&] { EXPECT_TRUE(gate.pass()); });
    first.record(*event);
    second.wait(*event);
  }
  second.launch([&] { after_the_gate = gate.is_open(); });
  gate.open();
  first.synchronize();
  second.synchronize();
  EXPECT_TRUE(after_the_gate);
}

TEST(HostSteps, TakeTheirTimeWithoutAProcessor) {
  HostStream stream;
  const nanoseconds processor_before = processor_time();
  const Stopwatch time;
  for (int n = 0; n < 10; ++n) stream.step(40ms);
  stream.synchronize();
  EXPECT_GE(time.elapsed(), 400ms);
  EXPECT_LT(processor_time() - processor_before, 200ms);
}

TEST(HostSteps, BackToBackHaveNoIdleTimeAtAll) {
  HostStream stream;
  Gate gate;
  stream.launch([&] { EXPECT_TRUE(gate.pass()); });
  for (int n = 0; n < 100; ++n) stream.step(1ms);
  gate.open();
  stream.synchronize();
  const StepStatistics steps = stream.steps();
  EXPECT_EQ(steps.steps, 100U);
  EXPECT_EQ(steps.busy, 100ms);
  EXPECT_EQ(steps.idle, 0ns);
}

TEST(HostSteps, WaitingForAnEventIsIdleTime) {
  HostDevice device;
  const auto event = device.make_event();
  HostStream other;
  HostStream stream;
  const Stopwatch time;
  other.step(80ms);
  other.record(*event);
  stream.step(10ms);
  stream.wait(*event);
  stream.step(10ms);
  const nanoseconds enqueueing = time.elapsed();
  stream.synchronize();
  // The other step began, and this one ended, within the time it took to enqueue all this.
  EXPECT_GE(stream.steps().idle, 70ms - enqueueing);
  EXPECT_LE(stream.steps().idle, 70ms + enqueueing);
  EXPECT_EQ(stream.steps().busy, 20ms);
}

TEST(HostSteps, AnEventThatWasInTimeCostsNothing) {
  HostDevice device;
  const auto event = device.make_event();
  HostStream other;
  HostStream stream;
  Gate gate;
  const OpensAtEnd opens(gate);
  stream.launch([&] { EXPECT_TRUE(gate.pass()); });
  stream.step(30ms);
  stream.wait(*event);
  other.record(*event);
  stream.wait(*event);
  stream.step(1ms);
  other.synchronize();
  gate.open();
  stream.synchronize();
  EXPECT_EQ(stream.steps().idle, 0ns);
}

TEST(HostSteps, ALateStepIsIdleTime) {
  HostStream stream;
  stream.step(5ms);
  stream.synchronize();
  std::this_thread::sleep_for(40ms);
  const Stopwatch time;
  stream.step(5ms);
  stream.synchronize();
  EXPECT_GE(stream.steps().idle, 40ms);
}

TEST(HostSteps, CountAfreshAfterAReset) {
  HostStream stream;
  stream.step(5ms);
  stream.synchronize();
  std::this_thread::sleep_for(20ms);
  stream.reset_steps();
  EXPECT_EQ(stream.steps().steps, 0U);
  stream.step(2ms);
  stream.synchronize();
  EXPECT_EQ(stream.steps().steps, 1U);
  EXPECT_EQ(stream.steps().busy, 2ms);
  EXPECT_EQ(stream.steps().idle, 0ns) << "the gap before the reset does not count";
}

}  // namespace
}  // namespace millrace
