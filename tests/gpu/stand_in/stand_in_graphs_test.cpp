// SPDX-License-Identifier: Apache-2.0
//
// The stand-in's captures and graphs bear what CUDA's do.
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
    stand_in::reset();
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
  /// Ends a capture that was lost.
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
