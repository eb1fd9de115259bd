// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for stream capture and graphs, over the stand-in's machine. A graph
// is the work in the order in which the captured stream was given it; captures do not spread to
// other streams by events.
#include <cuda_runtime_api.h>

#include <utility>

#include "stand_in/machine.h"

using millrace::testing::stand_in::Capture;
using millrace::testing::stand_in::capture_mode;
using millrace::testing::stand_in::enter;
using millrace::testing::stand_in::give_locked;
using millrace::testing::stand_in::machine;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (const cudaError_t error = enter("cudaThreadExchangeStreamCaptureMode")) return error;
  std::swap(*mode, capture_mode());
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (const cudaError_t error = enter("cudaStreamIsCapturing")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = enter("cudaStreamBeginCapture")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  if (stream->capture != nullptr) return cudaErrorIllegalState;
  stream->capture = std::make_shared<Capture>(
      Capture{.mode = mode, .begun_by = std::this_thread::get_id(), .invalid = false, .work = {}});
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (const cudaError_t error = enter("cudaStreamEndCapture")) return error;
  std::lock_guard lock(machine().mutex);
  *graph = nullptr;
  if (!machine().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->begun_by != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  stream->capture.reset();
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  *graph = new CUgraph_st{std::move(capture->work)};
  machine().graphs.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* execution, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  if (const cudaError_t error = enter("cudaGraphInstantiate")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().graphs.contains(graph)) return cudaErrorInvalidValue;
  *execution = new CUgraphExec_st{graph->work};
  machine().graph_executions.insert(*execution);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t execution, cudaStream_t stream) {
  if (const cudaError_t error = enter("cudaGraphLaunch")) return error;
  std::lock_guard lock(machine().mutex);
  if (!machine().graph_executions.contains(execution)) return cudaErrorInvalidValue;
  return give_locked(stream, [work = execution->work] {
    for (const auto& one : work) one();
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t execution) {
  if (const cudaError_t error = enter("cudaGraphExecDestroy")) return error;
  std::lock_guard lock(machine().mutex);
  if (machine().graph_executions.erase(execution) == 0) return cudaErrorInvalidValue;
  delete execution;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (const cudaError_t error = enter("cudaGraphDestroy")) return error;
  std::lock_guard lock(machine().mutex);
  if (machine().graphs.erase(graph) == 0) return cudaErrorInvalidValue;
  delete graph;
  return cudaSuccess;
}

}  // extern "C"
