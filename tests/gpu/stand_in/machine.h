// SPDX-License-Identifier: Apache-2.0
//
// Implementation of the stand-in: the objects behind its handles, and state that the runtime's
// functions share.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stand_in/queue.h"

namespace millrace::testing::stand_in {

/// For each stream, the number of its captured work items that an item comes after.
using Behind = std::map<cudaStream_t, std::size_t>;

/// Work given to streams while they were captured. After an operation that captures do not allow,
/// the whole capture is invalid.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id begun_by;
  cudaStream_t begun_in = nullptr;
  bool invalid = false;
  /// Work of all streams in the order in which it was given, which is consistent with all
  /// dependencies.
  std::vector<std::function<void()>> work;
  /// The stream in which it was begun and those that joined, with the dependencies of each one's
  /// next work.
  std::map<cudaStream_t, Behind> streams;
};

}  // namespace millrace::testing::stand_in

// The objects behind the handles.
struct CUstream_st {
  int device;
  /// Whether it and the legacy default stream wait for each other.
  bool blocking;
  int priority;
  std::shared_ptr<millrace::testing::stand_in::Queue> queue;
  /// Null while it is not captured.
  std::shared_ptr<millrace::testing::stand_in::Capture> capture{};
};
struct CUevent_st {
  int device;
  bool timed;
  std::shared_ptr<millrace::testing::stand_in::Point> point;
  /// The capture that it was recorded in; it is then not a point of a stream yet.
  std::weak_ptr<millrace::testing::stand_in::Capture> capture{};
  /// Its dependencies in that capture.
  millrace::testing::stand_in::Behind behind{};
};
struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};

namespace millrace::testing::stand_in {

constexpr std::size_t device_alignment = 256;
/// Byte that fills freed device memory.
constexpr int freed_poison = 0xDD;

/// A piece of device memory.
struct DevicePiece {
  std::size_t bytes;
  int device;
};

/// State of the stand-in. Its members are accessed under the mutex.
struct Machine {
  std::mutex mutex;
  int devices = 1;
  int driver = CUDART_VERSION;
  std::size_t device_bytes = std::size_t{1} << 36;
  std::chrono::nanoseconds copy_delay{100'000};
  double clock_factor = 1;
  struct Plan {
    std::uint64_t nth = 0;
    cudaError_t error = cudaSuccess;
    bool for_good = false;
    std::chrono::nanoseconds stall{0};
  };
  std::map<std::string, std::vector<Plan>> plans;
  std::map<std::string, std::uint64_t> calls;
  /// Error of every call that needs a device, after the devices were broken.
  cudaError_t broken = cudaSuccess;
  std::set<int> devices_used;
  std::uint64_t unlocked_copies = 0;
  std::set<cudaStream_t> streams;
  /// By device and thread; those without a thread are the legacy ones.
  std::map<std::pair<int, std::thread::id>, std::unique_ptr<CUstream_st>> default_streams;
  std::set<cudaEvent_t> events;
  /// Also queues of destroyed streams: their work is done nevertheless.
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::thread> threads;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> graph_executions;
  std::map<void*, DevicePiece> device_memory;
  std::map<void*, std::size_t> locked_memory;
  /// Device memory that was freed while streams were busy. It keeps its content until `reset`.
  std::map<void*, DevicePiece> freed_memory;
  /// Copies from or to memory that had been freed when the stream reached them.
  std::uint64_t late_copies = 0;
};

Machine& machine();

/// The devices whose contexts the calling thread has pushed; the last one is current.
std::vector<int>& contexts();

/// The device that the calling thread's calls use.
int current_device();

/// The calling thread's last error, for cudaGetLastError.
cudaError_t& last_error();

/// Counts a call, and returns the result that a test planned for it.
cudaError_t enter(const char* function);

/// The calling thread's mode of cudaThreadExchangeStreamCaptureMode.
cudaStreamCaptureMode& capture_mode();

/// Like `enter`, for a call that captures do not allow: if there is one that concerns the calling
/// thread, the call fails and the capture becomes invalid.
cudaError_t enter_outside_captures(const char* function);

/// Like `enter`, for a call that makes the context of `device` if it does not exist yet. Captures
/// do not allow that either.
cudaError_t enter_to_use(int device, const char* function);
/// Makes the device's context. Returns an error if the device does not exist.
cudaError_t use_device(int device);

/// Returns a call's result. An error, including "not ready", also becomes the thread's last error.
inline cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

/// Calls the runtime's function `work`, unless a test planned another result for it.
template <typename Work>
cudaError_t call(const char* function, Work work) {
  const cudaError_t error = enter(function);
  return told(error == cudaSuccess ? work() : error);
}

/// Does the same for a function that captures do not allow.
template <typename Work>
cudaError_t call_outside_captures(const char* function, Work work) {
  const cudaError_t error = enter_outside_captures(function);
  return told(error == cudaSuccess ? work() : error);
}

/// Waits for the work so far of all streams of `device`, or of all devices. Not counted.
void drain_device(int device);

// These have the same results in the runtime and in the driver:

/// Whether an event has passed.
cudaError_t event_status(cudaEvent_t event);
cudaError_t milliseconds_between(cudaEvent_t start, cudaEvent_t end, float* milliseconds);
/// Whether a stream is being captured.
cudaError_t capture_status(cudaStream_t handle, cudaStreamCaptureStatus* status);

// These require the machine's mutex:

/// A queue of `device`, with its thread.
std::shared_ptr<Queue> make_queue(int device);
/// The stream behind a handle for the calling thread, which may be one of its default streams; null
/// if it does not exist.
cudaStream_t stream_of(cudaStream_t handle);
/// The streams of `device` that wait for its legacy default stream.
std::vector<cudaStream_t> blocking_streams(int device);
bool is_legacy(const CUstream_st& stream);
/// Adds `work` to the stream. A captured stream keeps it for the graph.
cudaError_t give_locked(cudaStream_t handle, std::function<void()> work);

/// Does the same without the mutex held.
cudaError_t give(cudaStream_t handle, std::function<void()> work);

}  // namespace millrace::testing::stand_in
