// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>
#include <millrace/numa_memory.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "cuda_call.h"
#include "event_clock.h"
#include "kernel_launch.h"

namespace millrace {
namespace {

/// How often an event is asked whether it is complete while a thread waits for it.
constexpr std::chrono::microseconds ask_interval{50};

class CudaEvent final : public Event {
 public:
  /// On the current device. With a clock it tells when it was passed.
  explicit CudaEvent(std::shared_ptr<EventClock> clock = nullptr)
      : clock_(std::move(clock)), event_(make_event_handle(clock_ ? cudaEventDefault : cudaEventDisableTiming)) {}

  bool complete() const override {
    const cudaError_t status = cudaEventQuery(event_.get());
    if (status == cudaErrorNotReady) return false;
    check(status, "cudaEventQuery");
    return true;
  }

  bool wait(std::chrono::nanoseconds timeout) const override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    while (!complete()) {
      if (Clock::now() - begin >= timeout) return false;
      std::this_thread::sleep_for(ask_interval);
    }
    return true;
  }

  std::optional<std::chrono::steady_clock::time_point> passed_at() const override {
    return clock_ ? clock_->time_of(event_.get()) : std::nullopt;
  }

  cudaEvent_t handle() const { return event_.get(); }

 private:
  std::shared_ptr<EventClock> clock_;
  EventHandle event_;
};

cudaEvent_t handle_of(const Event& event) {
  const auto* cuda = dynamic_cast<const CudaEvent*>(&event);
  if (cuda == nullptr) throw Error(ErrorCode::device, "an event of another device was given to a CUDA stream");
  return cuda->handle();
}

CUstream_st* make_stream_on(int device) {
  const CurrentDevice current(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

}  // namespace

void CudaStream::Destroy::operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }

CudaStream::CudaStream(int device) : device_(device), owned_(make_stream_on(device)), stream_(owned_.get()) {}

CudaStream::CudaStream(int device, CUstream_st* stream) : device_(device), stream_(stream) {}

void CudaStream::copy(void* destination, const void* source, std::size_t bytes) {
  const CurrentDevice current(device_);
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
}

void CudaStream::copy_on_device(void* destination, const void* source, std::size_t bytes) {
  const CurrentDevice current(device_);
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
}

void CudaStream::convert(const ConversionWork& work) {
  const CurrentDevice current(device_);
  check(launch_conversion(work, stream_), "launch_conversion");
}

bool CudaStream::capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
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
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) throw Error(ErrorCode::device, std::string("no CUDA device: ") + cudaGetErrorString(status));
  if (count == 0) throw Error(ErrorCode::device, "no CUDA device: the driver finds none");
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::device, "there is no CUDA device " + std::to_string(ordinal) + "; there are " + std::to_string(count) +
                                       ", counted from 0");
}

std::string CudaDevice::name() const { return "cuda:" + std::to_string(ordinal_); }

Memory CudaDevice::allocate_host(std::size_t bytes, const NumaNode& node) {
  if (bytes == 0) return {};
  const CurrentDevice current(ordinal_);
  // The driver's own pinned memory lies on the node of the thread that asks for it; this is in its place before it is pinned.
  const auto pages = std::make_shared<Memory>(allocate_on_node(bytes, node));
  check(cudaHostRegister(pages->data(), bytes, cudaHostRegisterPortable), "cudaHostRegister");
  return Memory(pages->data(), bytes, [pages](std::byte* memory) { cudaHostUnregister(memory); });
}

Memory CudaDevice::allocate_device(std::size_t bytes) {
  const CurrentDevice current(ordinal_);
  void* data = nullptr;
  check(cudaMalloc(&data, bytes), "cudaMalloc");
  return Memory(static_cast<std::byte*>(data), bytes, [](std::byte* memory) { cudaFree(memory); });
}

std::unique_ptr<Stream> CudaDevice::make_stream() { return std::make_unique<CudaStream>(ordinal_); }

std::unique_ptr<Event> CudaDevice::make_event() {
  const CurrentDevice current(ordinal_);
  return std::make_unique<CudaEvent>();
}

std::unique_ptr<Event> CudaDevice::make_timed_event() {
  std::call_once(clock_made_, [this] { clock_ = std::make_shared<EventClock>(ordinal_); });
  const CurrentDevice current(ordinal_);
  return std::make_unique<CudaEvent>(clock_);
}

std::optional<int> CudaDevice::numa_node() const {
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal_) != cudaSuccess) return std::nullopt;
  std::string address(bus_id.data());
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char letter) { return std::tolower(letter); });
  std::ifstream file("/sys/bus/pci/devices/" + address + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

}  // namespace millrace
