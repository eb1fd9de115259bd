// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/detail/numa_memory.h>
#include <millrace/error.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>

#include "device/cuda_call.h"
#include "device/cuda_event.h"
#include "device/deferred_free.h"
#include "device/event_clock.h"
#include "device/nvtx_ranges.h"
#include "pixel/kernels.h"

namespace millrace {

namespace {

/// Timeouts of waits for deferred frees: in a device's destructor, and in an allocation that finds
/// too little memory.
constexpr std::chrono::milliseconds patience_at_end{20};
constexpr std::chrono::milliseconds patience_for_memory{2000};

/// Allocates an object by `take`, which makes the CUDA call named `call`. If memory is short, waits
/// for deferred frees and tries again. Throws `Error` (`device`).
template <typename Take>
void allocate_or_wait(DeferredFree& deferred, const char* call, Take take) {
  cudaError_t status = clear_last_error(take());
  if (status == cudaErrorMemoryAllocation) {  // deferred frees may have released memory
    deferred.queue->wait(patience_for_memory);
    status = take();
  }
  check(status, call);
}

Memory memory_of(DeferredFreeHandle deferred, std::size_t bytes) {
  DeferredFree* const released = deferred.release();
  return Memory(static_cast<std::byte*>(released->object), bytes,
                [released](std::byte*) { EnqueueFree()(released); });
}

}  // namespace

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal), profiler_(make_nvtx_ranges()) {
  check_not_forked();
  int count = 0;
  if (const cudaError_t status = clear_last_error(cudaGetDeviceCount(&count));
      status != cudaSuccess)
    throw Error(ErrorCode::device, why_no_device(status));
  if (count == 0) throw Error(ErrorCode::device, "no CUDA device: the driver finds none");
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::device, "there is no CUDA device " + std::to_string(ordinal) +
                                       "; there are " + std::to_string(count) + ", counted from 0");
  deallocations_ = DeallocationQueue::of(ordinal);
}

CudaDevice::~CudaDevice() {
  clock_.reset();
  if (!deallocations_->is_owner_process()) return;
  deallocations_->remove_user();
  deallocations_->wait(patience_at_end);
}

std::string CudaDevice::name() const { return "cuda:" + std::to_string(ordinal_); }

Memory CudaDevice::allocate_host(std::size_t bytes, const NumaNode& node) {
  if (bytes == 0) return {};
  const CurrentDevice current(ordinal_);
  DeferredFreeHandle deferred(new DeferredFree(ordinal_, "cudaHostUnregister", cudaHostUnregister));
  // The driver would allocate pinned memory on the node of the calling thread. So the pages are
  // placed first and pinned afterwards.
  deferred->pages = allocate_on_node(bytes, node);
  void* const data = deferred->pages.data();
  // A child of fork() would share the pages until either process writes to them. The writer would
  // then get other pages than the GPU reads from. munmap ends this setting.
  static_cast<void>(madvise(data, bytes, MADV_DONTFORK));
  allocate_or_wait(*deferred, "cudaHostRegister", [&] {
    return blocking_call("cudaHostRegister", cudaHostRegister, data, bytes,
                         unsigned{cudaHostRegisterPortable});
  });
  deferred->object = data;
  return memory_of(std::move(deferred), bytes);
}

Memory CudaDevice::allocate_device(std::size_t bytes) {
  if (bytes == 0) return {};
  const CurrentDevice current(ordinal_);
  DeferredFreeHandle deferred(new DeferredFree(ordinal_, "cudaFree", cudaFree));
  allocate_or_wait(*deferred, "cudaMalloc", [&] {
    return blocking_call<void**, std::size_t>("cudaMalloc", cudaMalloc, &deferred->object, bytes);
  });
  return memory_of(std::move(deferred), bytes);
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  const CurrentDevice current(ordinal_);
  const OutsideCaptures outside_captures;
  check(load_kernels(), "cudaFuncGetAttributes");
  return std::make_unique<CudaStream>(ordinal_);
}

std::unique_ptr<Event> CudaDevice::make_event() { return std::make_unique<CudaEvent>(ordinal_); }

std::unique_ptr<Event> CudaDevice::make_timed_event() {
  std::call_once(clock_made_, [this] { clock_ = std::make_shared<EventClock>(ordinal_); });
  return std::make_unique<CudaEvent>(ordinal_, clock_);
}

void CudaDevice::prepare_thread() {
  const OutsideCaptures outside_captures;  // the call may make a context
  check(cudaSetDevice(ordinal_), "cudaSetDevice");
}

std::optional<int> CudaDevice::numa_node() const {
  std::array<char, 32> bus_id{};
  if (clear_last_error(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()),
                                             ordinal_)) != cudaSuccess)
    return std::nullopt;
  std::string address(bus_id.data());
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  std::ifstream file("/sys/bus/pci/devices/" + address + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

}  // namespace millrace
