// SPDX-License-Identifier: Apache-2.0
//
// Complete runs with CudaDevice's own code, over a stand-in for the CUDA runtime: the batches, the
// calls, and the end.
#include <gmock/gmock.h>
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda_event.h"
#include "device/driver.h"
#include "gpu/device/cuda_run.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Checker;
using testing::CudaPipeline;
using testing::GpuRun;
using ::testing::HasSubstr;
using testing::patience;
using testing::Stopwatch;
namespace stand_in = testing::stand_in;

TEST_F(CudaPipeline, BatchesAreThoseOfTheHost) {
  for (const std::size_t device_slots : {1U, 2U, 3U}) {
    GpuRun run;
    run.options.slots.device_slots = device_slots;
    run.options.epochs = 3;
    Checker checker(run.expected());
    Pipeline pipeline = run.on(std::make_shared<CudaDevice>());
    while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
    stand_in::drain();
    EXPECT_EQ(checker.right(), checker.batches());
    EXPECT_EQ(checker.wrong(), 0U);
  }
}

// The step is slow, so the copies wait for it: reusing a slot too early would be detected.
TEST_F(CudaPipeline, SlotsAreUsedAgainBehindTheStep) {
  Checker checker(run_.expected());
  Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
  while (const Batch batch = pipeline.next(checker.stream(), patience)) {
    stand_in::launch(checker.stream().handle(), [] { std::this_thread::sleep_for(5ms); });
    checker.step(batch);
  }
  stand_in::drain();
  EXPECT_EQ(checker.right(), checker.batches());
}

TEST_F(CudaPipeline, UsesTheCallersStream) {
  cudaStream_t own = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess);
  {
    CudaStream stream(0, own);
    EXPECT_EQ(stream.handle(), own);
    Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
    std::size_t batches = 0;
    while (pipeline.next(stream, patience)) ++batches;
    EXPECT_EQ(batches, 6U);
  }
  EXPECT_EQ(cudaStreamDestroy(own), cudaSuccess) << "the stream was destroyed under its owner";
}

// A batch may be released on any thread, where this handle is a different stream: events recorded
// there would not be ordered after the step.
TEST_F(CudaPipeline, RefusesAStreamThatIsAnotherOneOnEachThread) {
  try {
    const CudaStream stream(0, cudaStreamPerThread);
    FAIL() << "the stream was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("cuda:0: the stream is cudaStreamPerThread (handle 2)"));
    EXPECT_THAT(error.what(), HasSubstr("another stream on each thread"));
    EXPECT_THAT(error.what(), HasSubstr("cudaStreamLegacy"));
  }
  EXPECT_EQ(CudaStream(0, cudaStreamLegacy).handle(), cudaStreamLegacy);
  EXPECT_EQ(CudaStream(0, nullptr).handle(), nullptr);
}

TEST_F(CudaPipeline, AskingLeavesTheTrainersLastErrorAlone) {
  CudaStream stream(0);
  const auto event = CudaDevice(0).make_timed_event();
  const auto never_recorded = CudaDevice(0).make_timed_event();
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  testing::Gate gate;
  stand_in::launch(stream.handle(), [&gate] { gate.pass(); });
  stream.record(*event);
  for (const cudaError_t own : {cudaSuccess, cudaErrorInvalidDevice, cudaErrorNotReady}) {
    if (own == cudaErrorInvalidDevice) {
      EXPECT_EQ(cudaSetDevice(1000), own);
    }
    if (own == cudaErrorNotReady) {
      cudaEvent_t handle = dynamic_cast<CudaEvent&>(*event).handle();
      EXPECT_EQ(cudaEventQuery(handle), own);
    }
    EXPECT_FALSE(event->complete());
    EXPECT_FALSE(event->wait(1ms));
    EXPECT_FALSE(event->passed_at());
    EXPECT_FALSE(never_recorded->passed_at());
    EXPECT_TRUE(CudaStream(0, nullptr).capturing()) << "the blocking one is";
    EXPECT_EQ(cudaGetLastError(), own);
  }
  gate.open();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  stand_in::drain();
}

// A context takes hundreds of megabytes of its device, and cannot be made if another process uses
// the device exclusively.
TEST_F(CudaPipeline, MakesNoContextOnOtherDevices) {
  stand_in::reset(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  run_.options.conversion = GpuRun::conversion();
  {
    Checker checker(run_.expected(), 1);
    Pipeline pipeline = run_.on(std::make_shared<CudaDevice>(1));
    while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
    stand_in::drain();
    EXPECT_EQ(checker.right(), checker.batches());
  }
  EXPECT_THAT(stand_in::devices_used(), ::testing::ElementsAre(1));
}

// The same if the trainer's thread has no current device: it must have none afterwards, too.
TEST_F(CudaPipeline, MakesNoContextOnTheFirstDeviceForAThreadWithoutOne) {
  stand_in::reset(2);
  run_.options.conversion = GpuRun::conversion();
  {
    Checker checker(run_.expected(), 1);
    {
      Pipeline pipeline = run_.on(std::make_shared<CudaDevice>(1));
      while (const Batch batch = pipeline.next(checker.stream(), patience)) {
        checker.step(batch);
        EXPECT_FALSE(checker.stream().capturing());
      }
      checker.stream().synchronize();
    }
    EXPECT_EQ(checker.right(), checker.batches());
    const auto event = CudaDevice(1).make_timed_event();
    checker.stream().record(*event);
    EXPECT_TRUE(event->wait(patience));
    EXPECT_TRUE(event->passed_at());
  }
  int device = 7;
  ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0) << "a device was chosen for the trainer";
  EXPECT_GT(stand_in::calls("cuCtxPushCurrent"), 0U);
  EXPECT_EQ(stand_in::calls("cuCtxPopCurrent"), stand_in::calls("cuCtxPushCurrent"));
  EXPECT_EQ(stand_in::calls("cuDevicePrimaryCtxRelease"),
            stand_in::calls("cuDevicePrimaryCtxRetain"));
  EXPECT_THAT(stand_in::devices_used(), ::testing::ElementsAre(1));
}

TEST_F(CudaPipeline, NothingAllocatesOrSynchronisesInSteadyState) {
  run_.options.epochs = 20;
  run_.options.conversion = GpuRun::conversion();
  run_.options.debug.forbid_blocking_calls = true;
  Checker checker(run_.expected());
  Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
  for (int n = 0; n < 8; ++n) checker.step(pipeline.next(checker.stream(), patience));
  const std::uint64_t allocating = stand_in::allocating_calls();
  const std::uint64_t copies = stand_in::calls("cudaMemcpyAsync");
  while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
  EXPECT_GT(stand_in::calls("cudaMemcpyAsync"), copies + 100);
  EXPECT_EQ(stand_in::allocating_calls(), allocating);
  EXPECT_EQ(stand_in::synchronising_calls(), 0U);
}

TEST_F(CudaPipeline, TheReportHasTheTimesOfCopies) {
  Checker checker(run_.expected());
  Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
  while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
  const auto copies = [&] {
    const Report report = pipeline.report();
    const auto stage = std::ranges::find(report.stages, std::string("copy"), &StageReport::name);
    return stage == report.stages.end() ? 0 : stage->each.count;
  };
  EXPECT_TRUE(testing::eventually([&] {
    return copies() == checker.batches() * run_.options.slots.micro_batches;
  })) << copies();
}

// The conversion is late, and the step slow: reusing memory too early, or handing it out before the
// conversion, would be detected.
TEST_F(CudaPipeline, ConvertedBatchesAreThoseOfTheHost) {
  stand_in::delay_copies(1ms);
  for (const std::size_t micro_batches : {1U, 3U})
    for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32})
      for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
        GpuRun run;
        run.options.slots.micro_batches = micro_batches;
        run.options.conversion = GpuRun::conversion(dtype, layout);
        Checker checker(run.expected());
        Pipeline pipeline = run.on(std::make_shared<CudaDevice>());
        while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
        stand_in::drain();
        EXPECT_EQ(checker.right(), checker.batches()) << to_string(dtype);
        EXPECT_EQ(checker.wrong(), 0U) << to_string(dtype);
      }
}

TEST_F(CudaPipeline, TwoDevicesConvertAtOnce) {
  stand_in::reset(2);
  run_.options.epochs = 5;
  run_.options.conversion = GpuRun::conversion(DType::float16, ImageLayout::nhwc);
  const auto expected = run_.expected();
  std::array<std::unique_ptr<Checker>, 2> checkers;
  for (int device = 0; device < 2; ++device)
    checkers[static_cast<std::size_t>(device)] = std::make_unique<Checker>(expected, device);
  {
    std::vector<std::jthread> trainers;
    for (int device = 0; device < 2; ++device)
      trainers.emplace_back([&, device] {
        Checker& checker = *checkers[static_cast<std::size_t>(device)];
        Pipeline pipeline = run_.on(std::make_shared<CudaDevice>(device));
        while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
      });
  }
  stand_in::drain();
  for (const auto& checker : checkers) EXPECT_EQ(checker->right(), expected.size());
}

TEST_F(CudaPipeline, WithoutADeviceItSaysSo) {
  stand_in::reset(0);
  try {
    (void)run_.on(std::make_shared<CudaDevice>());
    FAIL() << "a device was made that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), HasSubstr("no CUDA device"));
  }
}

TEST_F(CudaPipeline, WithTooOldADriverItSaysSo) {
  stand_in::install_driver(CUDART_VERSION / 1000 * 1000 - 920);  // 12.8, where this needs 13.0
  const std::string major = std::to_string(CUDART_VERSION / 1000);
  const std::string why = " knows CUDA " + std::to_string(CUDART_VERSION / 1000 - 1) +
                          ".8, this build needs " + major + ".0";
  EXPECT_THAT([] { CudaDevice device; }, ::testing::ThrowsMessage<Error>(::testing::EndsWith(why)));
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "version";
  std::ofstream(file) << "570.86.15\n";
  EXPECT_EQ(why_no_device(cudaErrorInsufficientDriver, file.c_str()), "driver 570.86.15" + why);
  stand_in::install_driver(0);
  EXPECT_THAT([] { CudaDevice device; },
              ::testing::ThrowsMessage<Error>(HasSubstr("no CUDA device: there is no driver")));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "what was told was left for the trainer to find";
}

TEST_F(CudaPipeline, EndsInTimeWhileTheStepGoesOn) {
  testing::Gate gate;
  auto checker = std::make_unique<Checker>(run_.expected());
  {
    Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
    Batch batch = pipeline.next(checker->stream(), patience);
    stand_in::launch(checker->stream().handle(), [&gate] { gate.pass(); });
    checker->step(batch);
    batch.reset();
    const Stopwatch time;
    EXPECT_THROW(pipeline.stop(), Error) << "the step uses a batch";
    EXPECT_LT(time.elapsed(), patience / 2) << "it waited for the step";
  }
  gate.open();
  stand_in::drain();
  EXPECT_EQ(checker->right(), 1U) << "memory went from under the step";
}

}  // namespace
}  // namespace millrace
