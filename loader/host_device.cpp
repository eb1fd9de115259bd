// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/host_device.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "host_stream.h"

namespace millrace {
namespace {

Memory map_pages(std::size_t bytes) {
  if (bytes == 0) return {};
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw Error(ErrorCode::device, "host: cannot take " + std::to_string(bytes) + " bytes of memory: " + std::strerror(errno));
  return Memory(static_cast<std::byte*>(pages), bytes, [bytes](std::byte* data) { munmap(data, bytes); });
}

}  // namespace

Memory HostDevice::allocate_host(std::size_t bytes) {
  allocations_.fetch_add(1, std::memory_order_relaxed);
  return map_pages(bytes);
}

Memory HostDevice::allocate_device(std::size_t bytes) {
  allocations_.fetch_add(1, std::memory_order_relaxed);
  return map_pages(bytes);
}

std::unique_ptr<Stream> HostDevice::make_stream() { return std::make_unique<HostStream>(options_.copy_bytes_per_second); }

std::unique_ptr<Event> HostDevice::make_event() { return std::make_unique<HostEvent>(); }

}  // namespace millrace
