// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/blocking_calls.h>
#include <millrace/detail/numa_memory.h>
#include <millrace/error.h>
#include <millrace/host_device.h>

#include "device/host_stream.h"

namespace millrace {

void Stream::copy_to_host(void*, const void*, std::size_t) {
  throw Error(ErrorCode::device, "this device's streams cannot copy to the host");
}

Memory HostDevice::allocate_host(std::size_t bytes, const NumaNode& node) {
  note_blocking_call("HostDevice::allocate_host");
  allocations_.fetch_add(1, std::memory_order_relaxed);
  return allocate_on_node(bytes, node);
}

Memory HostDevice::allocate_device(std::size_t bytes) {
  note_blocking_call("HostDevice::allocate_device");
  allocations_.fetch_add(1, std::memory_order_relaxed);
  return allocate_pages(bytes);
}

std::unique_ptr<Stream> HostDevice::make_stream() {
  note_blocking_call("HostDevice::make_stream");
  return std::make_unique<HostStream>(options_.copy_bytes_per_second);
}

std::unique_ptr<Event> HostDevice::make_event() {
  note_blocking_call("HostDevice::make_event");
  return std::make_unique<HostEvent>();
}

}  // namespace millrace
