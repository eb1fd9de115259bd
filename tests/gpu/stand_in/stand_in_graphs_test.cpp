// SPDX-License-Identifier: Apache-2.0
//
// The stand-in's captures and graphs allow what CUDA's allow.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "stand_in/stand_in_cuda.h"

namespace millrace {
namespace {

namespace stand_in = testing::stand_in;

class StandInGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    stand_in::reset(2);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    cudaEventDestroy(event_);
    cudaStreamDestroy(other_);
    cudaStreamDestroy(stream_);
    stand_in::reset();
  }
  cudaStreamCaptureStatus status() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
    return status;
  }
  /// Ends an invalid capture.
  void expect_lost() {
    EXPECT_EQ(status(), cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(), cudaStreamCaptureStatusNone);
  }

  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

TEST_F(StandInGraphs, WorkIsKeptAndRunsInOrderWithEachLaunch) {
  std::vector<int> done;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(status(), cudaStreamCaptureStatusActive);
  stand_in::launch(stream_, [&done] { done.push_back(1); });
  stand_in::launch(stream_, [&done] { done.push_back(2); });
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_, 0), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t execution = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&execution, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  stand_in::drain();
  EXPECT_TRUE(done.empty()) << "it ran when it was captured";
  ASSERT_EQ(cudaGraphLaunch(execution, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(execution, stream_), cudaSuccess);
  stand_in::drain();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 1, 2}));
  EXPECT_EQ(cudaGraphExecDestroy(execution), cudaSuccess);
}

TEST_F(StandInGraphs, AForbiddenCallOfAnyThreadLosesAGlobalCapture) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([this] {
    EXPECT_EQ(cudaEventQuery(event_), cudaErrorStreamCaptureUnsupported);
  }).join();
  expect_lost();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 100), cudaErrorStreamCaptureUnsupported);
  expect_lost();
}

TEST_F(StandInGraphs, ToMakeAContextLosesACapture) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([] {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess) << "there is one";
    EXPECT_EQ(cudaSetDevice(1), cudaErrorStreamCaptureUnsupported);
  }).join();
  expect_lost();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([] { EXPECT_EQ(cudaInitDevice(1, 0, 0), cudaErrorStreamCaptureUnsupported); }).join();
  expect_lost();
}

TEST_F(StandInGraphs, RelaxedThreadsAndLocalCapturesLeaveEachOtherAlone) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([this] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
  }).join();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);

  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::thread([this] { EXPECT_EQ(cudaEventQuery(event_), cudaSuccess); }).join();
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorStreamCaptureUnsupported)
      << "the thread that captures";
  expect_lost();
}

TEST_F(StandInGraphs, WhatLiesOutsideACaptureIsNotWaitedForInside) {
  ASSERT_EQ(cudaEventRecord(event_, other_), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_, 0), cudaErrorStreamCaptureIsolation);
  expect_lost();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  expect_lost();
}

TEST_F(StandInGraphs, AStreamThatWaitsJoinsACapture) {
  std::vector<int> done;
  cudaEvent_t back = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&back, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  stand_in::launch(stream_, [&done] { done.push_back(1); });
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
  cudaStreamCaptureStatus joined = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(other_, &joined), cudaSuccess);
  EXPECT_EQ(joined, cudaStreamCaptureStatusActive);
  stand_in::launch(other_, [&done] { done.push_back(2); });
  ASSERT_EQ(cudaEventRecord(back, other_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, back, 0), cudaSuccess);
  stand_in::launch(stream_, [&done] { done.push_back(3); });
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph), cudaErrorStreamCaptureUnmatched)
      << "it was not begun there";
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaStreamIsCapturing(other_, &joined), cudaSuccess);
  EXPECT_EQ(joined, cudaStreamCaptureStatusNone);
  cudaGraphExec_t execution = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&execution, graph, 0), cudaSuccess);
  stand_in::drain();
  EXPECT_TRUE(done.empty()) << "it ran when it was captured";
  ASSERT_EQ(cudaGraphLaunch(execution, stream_), cudaSuccess);
  stand_in::drain();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(execution), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(back), cudaSuccess);
}

TEST_F(StandInGraphs, AStreamThatJoinedMustComeBack) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
  stand_in::launch(other_, [] {});
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status(), cudaStreamCaptureStatusNone);
}

TEST_F(StandInGraphs, TwoCapturesDoNotBecomeOne) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(other_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaErrorStreamCaptureMerge);
  expect_lost();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph), cudaErrorStreamCaptureInvalidated);
}

// As in CUDA: querying the legacy default stream does not affect the capture, using it does.
TEST_F(StandInGraphs, TheLegacyStreamIsOfNoUseWhileABlockingOneIsCaptured) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed),
            cudaErrorStreamCaptureUnsupported);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  cudaStreamCaptureStatus legacy = cudaStreamCaptureStatusActive;
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &legacy), cudaSuccess) << "it is not a blocking one";
  EXPECT_EQ(legacy, cudaStreamCaptureStatusNone);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);

  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &legacy), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamIsCapturing(blocking, &legacy), cudaSuccess);
  EXPECT_EQ(legacy, cudaStreamCaptureStatusActive) << "to be asked lost it";
  EXPECT_EQ(cudaEventRecord(event_, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(StandInGraphs, AnEventOfACaptureIsNotAsked) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(stand_in::live(), 4U) << "a graph is counted";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace millrace
