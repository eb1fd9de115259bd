// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>
#include <millrace/numa_memory.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "device/cuda_call.h"
#include "device/cuda_event.h"
#include "device/event_clock.h"
#include "device/nvtx_ranges.h"
#include "pixel/kernel_table.h"

namespace millrace {

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal), profiler_(make_nvtx_ranges()) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess)
    throw Error(ErrorCode::device, std::string("no CUDA device: ") + cudaGetErrorString(status));
  if (count == 0) throw Error(ErrorCode::device, "no CUDA device: the driver finds none");
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::device, "there is no CUDA device " + std::to_string(ordinal) +
                                       "; there are " + std::to_string(count) + ", counted from 0");
}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::name() const { return "cuda:" + std::to_string(ordinal_); }

Memory CudaDevice::allocate_host(std::size_t bytes, const NumaNode& node) {
  if (bytes == 0) return {};
  const CurrentDevice current(ordinal_);
  // The driver's own pinned memory lies on the node of the thread that asks for it; this is in its
  // place before it is pinned.
  const auto pages = std::make_shared<Memory>(allocate_on_node(bytes, node));
  void* const data = pages->data();
  check(blocking_call("cudaHostRegister", cudaHostRegister, data, bytes,
                      unsigned{cudaHostRegisterPortable}),
        "cudaHostRegister");
  return Memory(pages->data(), bytes, [pages](std::byte* memory) {
    blocking_call("cudaHostUnregister", cudaHostUnregister, memory);
  });
}

Memory CudaDevice::allocate_device(std::size_t bytes) {
  const CurrentDevice current(ordinal_);
  void* data = nullptr;
  check(blocking_call<void**, std::size_t>("cudaMalloc", cudaMalloc, &data, bytes), "cudaMalloc");
  return Memory(static_cast<std::byte*>(data), bytes,
                [](std::byte* memory) { blocking_call("cudaFree", cudaFree, memory); });
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  const CurrentDevice current(ordinal_);
  check(load_kernels(), "cudaFuncGetAttributes");
  return std::make_unique<CudaStream>(ordinal_, true);
}

std::unique_ptr<Event> CudaDevice::make_event() {
  const CurrentDevice current(ordinal_);
  return std::make_unique<CudaEvent>();
}

std::unique_ptr<Event> CudaDevice::make_timed_event() {
  std::call_once(clock_made_, [this] { clock_ = std::make_shared<EventClock>(ordinal_); });
  const CurrentDevice current(ordinal_);
  return std::make_unique<CudaEvent>(clock_);
}

void CudaDevice::bind_thread() { check(cudaSetDevice(ordinal_), "cudaSetDevice"); }

std::optional<int> CudaDevice::numa_node() const {
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal_) !=
      cudaSuccess)
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
