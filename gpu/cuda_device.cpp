// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <thread>

namespace millrace {
namespace {

/// How often an event is asked whether it is complete while a thread waits for it.
constexpr std::chrono::microseconds ask_interval{50};

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::device,
              std::string(call) + " failed: " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

/// Makes a device the calling thread's current one, and puts back the one that was.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ == device) return;
    check(cudaSetDevice(device), "cudaSetDevice");
    changed_ = true;
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};

class CudaEvent final : public Event {
 public:
  CudaEvent() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    event_.reset(event);
  }

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

  cudaEvent_t handle() const { return event_.get(); }

 private:
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent> event_;
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

Memory CudaDevice::allocate_host(std::size_t bytes) {
  const CurrentDevice current(ordinal_);
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cudaHostAlloc");
  return Memory(static_cast<std::byte*>(data), bytes, [](std::byte* memory) { cudaFreeHost(memory); });
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
