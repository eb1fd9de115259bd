// SPDX-License-Identifier: Apache-2.0
//
// The inside of the stand-in: what its handles point to, and what the runtime's functions share.
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

/// How much of each stream's captured work something comes behind.
using Behind = std::map<cudaStream_t, std::size_t>;

/// What streams were given while they were captured. Once something was done that a capture does
/// not bear, all of it is lost.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id begun_by;
  cudaStream_t begun_in = nullptr;
  bool invalid = false;
  /// Of all streams, in the order in which it was given, which no dependency contradicts.
  std::vector<std::function<void()>> work;
  /// The stream in which it was begun and those that joined, and what the next work of each comes
  /// behind.
  std::map<cudaStream_t, Behind> streams;
};

}  // namespace millrace::testing::stand_in

// What the handles point to.
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
  /// Where it was recorded in a capture, which then is not yet a point of a stream.
  std::weak_ptr<millrace::testing::stand_in::Capture> capture{};
  /// What it comes behind in that capture.
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
/// What device memory holds that was given back.
constexpr int freed_poison = 0xDD;

/// A piece of device memory.
struct DevicePiece {
  std::size_t bytes;
  int device;
};

/// All that the stand-in knows. Its members are looked at under the mutex.
struct Machine {
  Machine() = default;
  /// Lets all streams end.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

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
  /// What every call that needs a device meets, once that has failed.
  cudaError_t broken = cudaSuccess;
  std::set<int> devices_used;
  std::uint64_t unlocked_copies = 0;
  std::set<cudaStream_t> streams;
  /// By device and thread; those of no thread are the legacy ones.
  std::map<std::pair<int, std::thread::id>, std::unique_ptr<CUstream_st>> default_streams;
  std::set<cudaEvent_t> events;
  /// Also those of streams that were destroyed: what they were given is done all the same.
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::thread> threads;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> graph_executions;
  std::map<void*, DevicePiece> device_memory;
  std::map<void*, std::size_t> locked_memory;
  /// Device memory that went while streams were busy. It stays as it was left until `reset`.
  std::map<void*, DevicePiece> freed_memory;
  /// Copies from or to memory that had gone when the stream came to them.
  std::uint64_t late_copies = 0;
};

Machine& machine();

/// The devices whose contexts the calling thread has pushed; the last one is current.
std::vector<int>& contexts();

/// The device that the calling thread's calls are about.
int current_device();

/// The calling thread's: what cudaGetLastError tells.
cudaError_t& last_error();

/// Counts a call; what a test planned for it is its result.
cudaError_t enter(const char* function);

/// How the calling thread's calls bear on captures: cudaThreadExchangeStreamCaptureMode.
cudaStreamCaptureMode& capture_mode();

/// As `enter`, for a call that captures do not bear: while there is one that concerns the calling
/// thread, the call fails and the capture is lost.
cudaError_t enter_outside_captures(const char* function);

/// As `enter`, for a call that makes the context of `device` where there is none, which captures do
/// not bear either.
cudaError_t enter_to_use(int device, const char* function);
/// The device has a context from now on. An error where there is no such device.
cudaError_t use_device(int device);

/// A call's result; an error becomes the thread's last one, also that something is not ready.
inline cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

/// A call of the runtime: `work`, unless a test planned something else for it.
template <typename Work>
cudaError_t call(const char* function, Work work) {
  const cudaError_t error = enter(function);
  return told(error == cudaSuccess ? work() : error);
}

/// The same, for one that captures do not bear.
template <typename Work>
cudaError_t call_outside_captures(const char* function, Work work) {
  const cudaError_t error = enter_outside_captures(function);
  return told(error == cudaSuccess ? work() : error);
}

/// Waits until all streams of `device`, or of all devices, have done what they were given so far.
/// Not counted.
void drain_device(int device);

// The runtime and the driver tell the same of these:

/// Whether an event has passed.
cudaError_t event_status(cudaEvent_t event);
cudaError_t milliseconds_between(cudaEvent_t start, cudaEvent_t end, float* milliseconds);
/// Whether a stream is being captured.
cudaError_t capture_status(cudaStream_t handle, cudaStreamCaptureStatus* status);

// With the machine's mutex held:

/// A queue of `device`, with its thread.
std::shared_ptr<Queue> make_queue(int device);
/// The stream that a handle is to the calling thread, whose default streams are among them; null
/// where there is none.
cudaStream_t stream_of(cudaStream_t handle);
/// The streams of `device` that wait for its legacy default stream.
std::vector<cudaStream_t> blocking_streams(int device);
bool is_legacy(const CUstream_st& stream);
/// The stream does `work` when it has come so far; one that is captured keeps it for the graph.
cudaError_t give_locked(cudaStream_t handle, std::function<void()> work);

/// The same without the mutex held.
cudaError_t give(cudaStream_t handle, std::function<void()> work);

}  // namespace millrace::testing::stand_in
