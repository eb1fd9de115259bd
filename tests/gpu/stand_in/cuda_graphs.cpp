// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for stream capture and graphs, over the stand-in's machine. A graph
// is the work in the order in which the captured streams were given it. A stream joins a capture by
// waiting for one of its events, and its work must come before the end of the first stream.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "stand_in/machine.h"

using millrace::testing::stand_in::Behind;
using millrace::testing::stand_in::blocking_streams;
using millrace::testing::stand_in::call;
using millrace::testing::stand_in::Capture;
using millrace::testing::stand_in::capture_mode;
using millrace::testing::stand_in::capture_status;
using millrace::testing::stand_in::give_locked;
using millrace::testing::stand_in::is_legacy;
using millrace::testing::stand_in::machine;
using millrace::testing::stand_in::stream_of;

namespace {

/// Whether all work of streams that joined comes before the next work of the first stream.
bool joined(const Capture& capture) {
  const Behind& end = capture.streams.at(capture.begun_in);
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const auto& stream) {
    const auto given = stream.second.find(stream.first);
    if (given == stream.second.end()) return true;
    const auto reached = end.find(stream.first);
    return reached != end.end() && reached->second >= given->second;
  });
}

}  // namespace

cudaError_t millrace::testing::stand_in::capture_status(cudaStream_t handle,
                                                        cudaStreamCaptureStatus* status) {
  std::lock_guard lock(machine().mutex);
  const cudaStream_t stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (is_legacy(*stream))
    for (const cudaStream_t blocking : blocking_streams(stream->device))
      if (blocking->capture != nullptr) return cudaErrorStreamCaptureImplicit;
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&] {
    std::swap(*mode, capture_mode());
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] { return capture_status(stream, status); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] {
    std::lock_guard lock(machine().mutex);
    const cudaStream_t stream = stream_of(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (is_legacy(*stream)) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>(Capture{.mode = mode,
                                                        .begun_by = std::this_thread::get_id(),
                                                        .begun_in = stream,
                                                        .work = {},
                                                        .streams = {{stream, {}}}});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&] {
    std::lock_guard lock(machine().mutex);
    *graph = nullptr;
    const cudaStream_t stream = stream_of(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->begun_in != stream) return cudaErrorStreamCaptureUnmatched;
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->begun_by != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    for (const auto& [captured, behind] : capture->streams) captured->capture.reset();
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (!joined(*capture)) return cudaErrorStreamCaptureUnjoined;
    *graph = new CUgraph_st{std::move(capture->work)};
    machine().graphs.insert(*graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* execution, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  return call("cudaGraphInstantiate", [&] {
    std::lock_guard lock(machine().mutex);
    if (!machine().graphs.contains(graph)) return cudaErrorInvalidValue;
    *execution = new CUgraphExec_st{graph->work};
    machine().graph_executions.insert(*execution);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t execution, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    std::lock_guard lock(machine().mutex);
    if (!machine().graph_executions.contains(execution)) return cudaErrorInvalidValue;
    return give_locked(stream, [work = execution->work] {
      for (const auto& one : work) one();
    });
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t execution) {
  return call("cudaGraphExecDestroy", [&] {
    std::lock_guard lock(machine().mutex);
    if (machine().graph_executions.erase(execution) == 0) return cudaErrorInvalidValue;
    delete execution;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&] {
    std::lock_guard lock(machine().mutex);
    if (machine().graphs.erase(graph) == 0) return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}

}  // extern "C"
