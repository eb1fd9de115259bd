// SPDX-License-Identifier: Apache-2.0
//
// All code of gpu/ that allocates, creates, frees or waits must report it: each such call is made
// while a batch is produced, and its report is checked.
#include <gmock/gmock.h>
#include <millrace/conversion_work.h>
#include <millrace/cuda_device.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "loader/pipeline/blocking_call_of.h"
#include "stand_in/stand_in_cuda.h"

namespace millrace {
namespace {

using testing::blocking_call_of;
using ::testing::HasSubstr;
namespace stand_in = testing::stand_in;

class BlockingCalls : public ::testing::Test {
 protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { stand_in::reset(); }
};

TEST_F(BlockingCalls, AreToldByTheirNames) {
  CudaDevice device;
  Memory memory;
  Memory pinned;
  std::unique_ptr<Event> event;
  std::unique_ptr<Stream> stream;
  const NumaNode node{};
  EXPECT_THAT(blocking_call_of([&] { memory = device.allocate_device(100); }),
              HasSubstr("cudaMalloc"));
  EXPECT_THAT(blocking_call_of([&] { pinned = device.allocate_host(100, node); }),
              HasSubstr("cudaHostRegister"));
  EXPECT_THAT(blocking_call_of([&] { event = device.make_event(); }),
              HasSubstr("cudaEventCreateWithFlags"));
  EXPECT_THAT(blocking_call_of([&] { stream = device.make_stream(); }),
              HasSubstr("cudaStreamCreateWithPriority"));
  EXPECT_THAT(blocking_call_of([&] { stream->synchronize(); }), HasSubstr("cudaStreamSynchronize"));
  EXPECT_THAT(blocking_call_of([&] { memory = {}; }), HasSubstr("cudaFree"));
  EXPECT_THAT(blocking_call_of([&] { pinned = {}; }), HasSubstr("cudaHostUnregister"));
  EXPECT_THAT(blocking_call_of([&] { event.reset(); }), HasSubstr("cudaEventDestroy"));
  EXPECT_THAT(blocking_call_of([&] { stream.reset(); }), HasSubstr("cudaStreamDestroy"));
}

TEST_F(BlockingCalls, AreNoneOfThoseOnTheWayOfABatch) {
  CudaDevice device;
  const Memory memory = device.allocate_device(96);
  const Memory pinned = device.allocate_host(96, {});
  const auto event = device.make_timed_event();
  const auto stream = device.make_stream();
  EXPECT_EQ(
      blocking_call_of([&] {
        stream->copy(memory.data(), pinned.data(), 48);
        stream->copy_on_device(memory.data() + 48, memory.data(), 48);
        stream->launch(ConversionWork{.source = reinterpret_cast<std::uint8_t*>(memory.data()),
                                      .destination = memory.data() + 48,
                                      .samples = 1,
                                      .height = 4,
                                      .width = 4,
                                      .channels = 3,
                                      .dtype = DType::uint8});
        stream->record(*event);
        stream->wait(*event);
        EXPECT_FALSE(stream->capturing());
        EXPECT_TRUE(event->wait(std::chrono::seconds(30)));
        EXPECT_TRUE(event->passed_at());
      }),
      "");
  EXPECT_EQ(stand_in::calls("cudaLaunchKernel"), 1U);
  stand_in::drain();
}

// Each of these calls would otherwise be forbidden, and end the capture.
TEST_F(BlockingCalls, AreAllowedWhileAnotherStreamIsCaptured) {
  CudaDevice device;
  const auto event = device.make_timed_event();
  const auto stream = device.make_stream();
  stream->record(*event);
  CudaStream captured(0);
  ASSERT_EQ(cudaStreamBeginCapture(captured.handle(), cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_TRUE(captured.capturing());
  EXPECT_FALSE(stream->capturing());
  {
    const Memory memory = device.allocate_device(100);
    const Memory pinned = device.allocate_host(100, {});
    EXPECT_TRUE(event->wait(std::chrono::seconds(30)));
    EXPECT_TRUE(event->passed_at());
    stream->synchronize();
    device.make_event().reset();
    device.make_stream().reset();
  }
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the thread's own mode was not put back";
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(captured.handle(), &graph), cudaSuccess) << "the capture was lost";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// The first use of another device makes its context, which would invalidate the capture.
TEST_F(BlockingCalls, AreAllowedOnANewDeviceWhileAStreamIsCaptured) {
  stand_in::reset(2);
  CudaStream captured(0);
  ASSERT_EQ(cudaStreamBeginCapture(captured.handle(), cudaStreamCaptureModeGlobal), cudaSuccess);
  CudaDevice device(1);
  { const Memory memory = device.allocate_device(100); }
  std::thread([&] { EXPECT_NO_THROW(device.make_event().reset()); }).join();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(captured.handle(), &graph), cudaSuccess) << "the capture was lost";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(BlockingCalls, ABoundThreadMakesItsContextWhileAStreamIsCaptured) {
  stand_in::reset(2);
  CudaStream captured(0);
  CudaDevice device(1);
  ASSERT_EQ(cudaStreamBeginCapture(captured.handle(), cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([&] { EXPECT_NO_THROW(device.prepare_thread()); }).join();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(captured.handle(), &graph), cudaSuccess) << "the capture was lost";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace millrace
