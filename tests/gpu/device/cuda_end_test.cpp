// SPDX-License-Identifier: Apache-2.0
//
// A device frees its memory, streams and events without making any caller wait for the GPU.
#include <gmock/gmock.h>
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "device/cuda_event.h"
#include "gpu/device/cuda_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Checker;
using testing::CudaPipeline;
using testing::GpuRun;
using testing::patience;
using testing::Stopwatch;
namespace stand_in = testing::stand_in;

/// Frees that wait for a GPU wait until the gate opens, for all of `patience`. These calls may take
/// this much longer than their promised time, on a busy machine.
constexpr auto machine_delay = patience / 2;

class CudaEnd : public CudaPipeline {
 protected:
  static constexpr auto stop_timeout = 200ms;

  CudaEnd() {
    run_.options.debug.stop_timeout = stop_timeout;
    run_.options.conversion = GpuRun::conversion();
  }
};

TEST_F(CudaEnd, APipelinesEndDoesNotWaitForOthersWork) {
  constexpr auto long_timeout = patience / 2;  // a wait for the other stream takes all of it
  run_.options.debug.stop_timeout = long_timeout;
  for (int n = 0; n < 5; ++n) {
    Checker checker(run_.expected());
    CudaStream other(0);
    testing::Gate gate;
    std::optional<Pipeline> pipeline(run_.on(std::make_shared<CudaDevice>()));
    checker.step(pipeline->next(checker.stream(), patience));
    checker.stream().synchronize();
    stand_in::launch(other.handle(), [&gate] { gate.pass(); });
    const Stopwatch time;
    pipeline->stop();
    pipeline.reset();
    EXPECT_LT(time.elapsed(), long_timeout) << "it waited for another stream";
    if (!stand_in::frees_at_once()) {
      EXPECT_GT(stand_in::live(), 4U) << "memory was given back while the device was busy";
    }
    gate.open();
    stand_in::drain();
    EXPECT_EQ(checker.right(), 1U);
  }
}

TEST_F(CudaEnd, ABatchThatOutlivesItsPipelineIsLetGoWithoutAWait) {
  CudaStream trainer(0);
  CudaStream other(0);
  testing::Gate gate;
  Batch batch;
  {
    Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
    batch = pipeline.next(trainer, patience);
    trainer.synchronize();
  }
  stand_in::launch(other.handle(), [&gate] { gate.pass(); });
  const Stopwatch time;
  batch.reset();
  EXPECT_LT(time.elapsed(), machine_delay);
  gate.open();
  stand_in::drain();
}

TEST_F(CudaEnd, AHungKernelHoldsNobodyUp) {
  auto checker = std::make_unique<Checker>(run_.expected());
  testing::Gate gate;
  std::optional<Pipeline> pipeline(run_.on(std::make_shared<CudaDevice>()));
  Batch batch = pipeline->next(checker->stream(), patience);
  stand_in::launch(checker->stream().handle(), [&gate] { gate.pass(); });
  checker->step(batch);
  batch.reset();
  const Stopwatch time;
  pipeline.reset();
  EXPECT_LT(time.elapsed(), stop_timeout + machine_delay);
  gate.open();
  stand_in::drain();
  EXPECT_EQ(checker->right(), 1U) << "memory went from under the step";
}

/// Parameter: the failing call.
class CudaEndFaults : public CudaEnd, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Calls, CudaEndFaults,
                         ::testing::Values("cudaEventRecord", "cuStreamIsCapturing",
                                           "cuEventQuery"));

// If the end of the step's use of its batch cannot be detected, the memory must not be freed before
// it.
TEST_P(CudaEndFaults, MemoryStaysUnderTheStep) {
  Checker checker(run_.expected());
  testing::Gate gate;
  std::optional<Pipeline> pipeline(run_.on(std::make_shared<CudaDevice>()));
  Batch batch = pipeline->next(checker.stream(), patience);
  stand_in::launch(checker.stream().handle(), [&gate] { gate.pass(); });
  checker.step(batch);
  stand_in::fail(GetParam(), 1, cudaErrorIllegalAddress, true);
  std::jthread opener([&gate] {
    std::this_thread::sleep_for(100ms);
    gate.open();
  });
  batch.reset();
  pipeline.reset();
  stand_in::drain();
  EXPECT_EQ(checker.right(), 1U) << "memory went from under the step";
}

// Like after a kernel's illegal address: all calls fail, and nothing can be freed.
TEST_F(CudaEnd, ADeviceThatFailsForGoodEndsTheRunInTime) {
  run_.options.epochs = 0;
  auto stream = std::make_unique<CudaStream>(0);
  std::optional<Pipeline> pipeline(run_.on(std::make_shared<CudaDevice>()));
  Batch batch = pipeline->next(*stream, patience);
  stand_in::break_devices(cudaErrorIllegalAddress);
  const Stopwatch time;
  batch.reset();
  std::string message;
  try {
    while (pipeline->next(*stream, patience)) {
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    message = error.what();
  }
  EXPECT_THAT(message, ::testing::HasSubstr(" failed: "));
  pipeline.reset();
  stream.reset();
  EXPECT_LT(time.elapsed(), stop_timeout + machine_delay);
  EXPECT_GT(stand_in::live(), 0U);
  stand_in::reset();
}

TEST_F(CudaEnd, MemoryIsLetGoByAnyThreadAtOnce) {
  std::optional<CudaDevice> device(std::in_place);
  CudaStream other(0);
  testing::Gate gate;
  Memory memory = device->allocate_device(1000);
  Memory pinned = device->allocate_host(1000, {});
  std::unique_ptr<Event> event = device->make_timed_event();
  std::unique_ptr<Stream> stream = device->make_stream();
  stand_in::launch(other.handle(), [&gate] { gate.pass(); });
  const Stopwatch time;
  std::thread([&] { memory = {}; }).join();
  device.reset();
  pinned = {};
  event.reset();
  stream.reset();
  EXPECT_LT(time.elapsed(), machine_delay);
  if (!stand_in::frees_at_once()) {
    EXPECT_EQ(stand_in::calls("cudaHostUnregister"), 0U) << "pinned memory went before its turn";
  }
  gate.open();
  stand_in::drain();
}

// The pages of pinned memory stay until they are unlocked: otherwise the system would reuse their
// addresses for the next allocation.
TEST_F(CudaEnd, MemoryIsTakenAgainWhileTheLastOneIsOnItsWay) {
  CudaDevice device;
  for (int n = 0; n < 50; ++n) {
    const Memory pinned = device.allocate_host(1000, {});
    const Memory memory = device.allocate_device(1000);
    ASSERT_NE(pinned.data(), nullptr);
  }
}

TEST_F(CudaEnd, AnAllocationWaitsForWhatIsOnItsWayBack) {
  CudaDevice device;
  CudaStream other(0);
  stand_in::limit_memory(1000);
  Memory memory = device.allocate_device(1000);
  EXPECT_THROW((void)device.allocate_device(1), Error) << "there is nothing to wait for";
  const auto behind_a_kernel = [&](auto allocate) {
    testing::Gate gate;
    stand_in::launch(other.handle(), [&gate] { gate.pass(); });
    memory = {};
    std::jthread opener([&gate] {
      std::this_thread::sleep_for(50ms);
      gate.open();
    });
    const Memory taken = allocate();
    EXPECT_EQ(taken.bytes(), 1000U);
    stand_in::drain();
  };
  behind_a_kernel([&] { return device.allocate_device(1000); });
  memory = device.allocate_device(1000);
  stand_in::fail("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  behind_a_kernel([&] { return device.allocate_host(1000, {}); });
  EXPECT_EQ(stand_in::calls("cudaHostRegister"), 2U);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "what the first attempt met was left behind";
}

// The memory is freed between the failed attempt and the check for pending frees.
TEST_F(CudaEnd, AnAllocationTriesAgainThoughAllIsBackAlready) {
  CudaDevice device;
  stand_in::fail("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(device.allocate_host(1000, {}).bytes(), 1000U);
  EXPECT_EQ(stand_in::calls("cudaHostRegister"), 2U);
}

TEST_F(CudaEnd, AnAllocationDoesNotWaitForEver) {
  if (stand_in::frees_at_once()) GTEST_SKIP() << "memory goes at once, so there is no wait";
  CudaDevice device;
  CudaStream other(0);
  testing::Gate gate;
  stand_in::limit_memory(1000);
  Memory memory = device.allocate_device(1000);
  stand_in::launch(other.handle(), [&gate] { gate.pass(); });
  memory = {};
  EXPECT_THROW((void)device.allocate_device(1000), Error);
  gate.open();
  stand_in::drain();
}

// The CUDA runtime ends with the process, and no thread may call it then.
TEST_F(CudaEnd, AProcessEndsWhenAllIsBack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_behind_a_kernel = [] {
    std::atexit([] { std::_Exit(stand_in::live() == 1 ? 0 : 1); });  // called after the queue
                                                                     // closes
    CudaDevice device;
    const CudaStream other(0);
    Memory memory = device.allocate_device(1000);
    stand_in::launch(other.handle(), [] { std::this_thread::sleep_for(100ms); });
    memory = {};
    std::exit(0);
  };
  EXPECT_EXIT(end_behind_a_kernel(), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaEnd, AHungDeviceDoesNotHoldTheProcessUp) {
  if (stand_in::frees_at_once()) GTEST_SKIP() << "memory goes at once, also where a device hangs";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_behind_a_hung_kernel = [] {
    std::atexit([] { std::_Exit(stand_in::live() == 2 ? 0 : 1); });
    CudaDevice device;
    const CudaStream other(0);
    Memory memory = device.allocate_device(1000);
    static testing::Gate& gate = *new testing::Gate;  // closed as long as the process lives
    stand_in::launch(other.handle(), [] { gate.pass(); });
    memory = {};
    std::exit(0);
  };
  EXPECT_EXIT(end_behind_a_hung_kernel(), ::testing::ExitedWithCode(0), "");
}

// A destroyed pipeline leaves a thread that queries the events of its slots until they are unused.
TEST_F(CudaEnd, AProcessMayEndWhileAThreadQueriesEvents) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_beside_a_thread = [] {
    static std::atomic<int> queries{0};
    std::thread([] {
      const CudaEvent event(0);
      while (event.complete()) ++queries;
    }).detach();
    while (queries < 10) std::this_thread::yield();
    std::exit(0);
  };
  EXPECT_EXIT(end_beside_a_thread(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace
