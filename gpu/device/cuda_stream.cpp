// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <chrono>
#include <thread>

#include "device/cuda_call.h"
#include "device/cuda_event.h"
#include "pixel/kernels.h"

namespace millrace {
namespace {

/// Polling interval while a thread waits for an event.
constexpr std::chrono::microseconds ask_interval{50};

cudaEvent_t handle_of(const Event& event) {
  const auto* cuda = dynamic_cast<const CudaEvent*>(&event);
  if (cuda == nullptr)
    throw Error(ErrorCode::device, "an event of another device was given to a CUDA stream");
  return cuda->handle();
}

/// Refuses a handle that is a different stream on each thread. The last share of a batch may be
/// released on any thread, and would then record events on the wrong stream.
cudaStream_t same_on_all_threads(int device, cudaStream_t stream) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  const bool per_thread = stream == nullptr || stream == cudaStreamPerThread;
#else
  const bool per_thread = stream == cudaStreamPerThread;
#endif
  if (!per_thread) return stream;
  throw Error(ErrorCode::invalid_argument,
              "cuda:" + std::to_string(device) +
                  ": the stream is cudaStreamPerThread (handle 2), which is another stream on each "
                  "thread, and a batch is let go on any thread; give cudaStreamLegacy (handle 1) "
                  "or a stream made by cudaStreamCreateWithFlags");
}

DeferredFreeHandle make_stream_on(int device, bool urgent) {
  constexpr const char* name = "cudaStreamCreateWithPriority";
  const CurrentDevice current(device);
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  DeferredFreeHandle deferred(new DeferredFree(device, "cudaStreamDestroy", [](void* stream) {
    return cudaStreamDestroy(static_cast<cudaStream_t>(stream));
  }));
  cudaStream_t stream = nullptr;
  const int priority = urgent ? greatest : least;
  check(blocking_call(name, cudaStreamCreateWithPriority, &stream, unsigned{cudaStreamNonBlocking},
                      priority),
        name);
  deferred->object = stream;
  return deferred;
}

}  // namespace

CudaEvent::CudaEvent(int device, std::shared_ptr<EventClock> clock)
    : device_(device), clock_(std::move(clock)) {
  const CurrentDevice current(device_);
  event_ = make_event_handle(clock_ ? cudaEventDefault : cudaEventDisableTiming);
}

bool CudaEvent::complete() const {
  const CurrentDevice current(device_);
  return has_passed(event_.get());
}

bool CudaEvent::wait(std::chrono::nanoseconds timeout) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!complete()) {
    if (Clock::now() - begin >= timeout) return false;
    std::this_thread::sleep_for(ask_interval);
  }
  return true;
}

std::optional<std::chrono::steady_clock::time_point> CudaEvent::passed_at() const {
  return clock_ ? clock_->time_of(event_.get()) : std::nullopt;
}

void CudaStream::Deleter::operator()(DeferredFree* deferred) const { EnqueueFree()(deferred); }

CudaStream::CudaStream(int device, bool urgent)
    : device_(device),
      owned_(make_stream_on(device, urgent).release()),
      stream_(static_cast<CUstream_st*>(owned_->object)) {}

CudaStream::CudaStream(int device, CUstream_st* stream)
    : device_(device), stream_(same_on_all_threads(device, stream)) {}

void CudaStream::copy(void* destination, const void* source, std::size_t bytes) {
  const CurrentDevice current(device_);
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync");
}

void CudaStream::copy_on_device(void* destination, const void* source, std::size_t bytes) {
  const CurrentDevice current(device_);
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
}

void CudaStream::copy_to_host(void* destination, const void* source, std::size_t bytes) {
  const CurrentDevice current(device_);
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToHost, stream_),
        "cudaMemcpyAsync");
}

void CudaStream::launch(const DeviceWork& work) {
  const CurrentDevice current(device_);
  const OutsideCaptures outside_captures;  // the runtime may load the kernel now
  const std::optional<KernelLaunch> launched = launch_kernel(work, stream_);
  if (!launched)
    throw Error(ErrorCode::device,
                std::string("there is no CUDA kernel for the work \"") + work.kernel() + '"');
  check(launched->status, launched->call);
}

bool CudaStream::capturing() const {
  const CurrentDevice current(device_);
  return is_capturing(stream_);
}

void CudaStream::record(Event& event) {
  const CurrentDevice current(device_);
  check(cudaEventRecord(handle_of(event), stream_), "cudaEventRecord");
}

void CudaStream::wait(const Event& event) {
  const CurrentDevice current(device_);
  check(cudaStreamWaitEvent(stream_, handle_of(event), 0), "cudaStreamWaitEvent");
}

void CudaStream::synchronize() {
  const CurrentDevice current(device_);
  check(blocking_call("cudaStreamSynchronize", cudaStreamSynchronize, stream_),
        "cudaStreamSynchronize");
}

}  // namespace millrace
