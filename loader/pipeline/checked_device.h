// SPDX-License-Identifier: Apache-2.0
//
// Checks of the results that a user's device returns.
#pragma once

#include <millrace/device.h>
#include <millrace/error.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace millrace {

/// Returns `memory`. Throws `Error` (`device`, with the call's name) if it has fewer than `bytes`.
inline Memory checked(Memory memory, std::size_t bytes, const Device& device, const char* call) {
  if (bytes > 0 && (memory.data() == nullptr || memory.bytes() < bytes))
    throw Error(ErrorCode::device, "device " + device.name() + ": " + call + " returned " +
                                       std::to_string(memory.bytes()) + " bytes of memory at " +
                                       (memory.data() == nullptr ? "null" : "an address") +
                                       "; it must return " + std::to_string(bytes));
  return memory;
}

/// Returns a stream or an event. Throws `Error` (`device`, with the call's name) if it is null.
template <typename Handle>
std::unique_ptr<Handle> checked(std::unique_ptr<Handle> handle, const Device& device,
                                const char* call) {
  if (handle == nullptr)
    throw Error(ErrorCode::device, "device " + device.name() + ": " + call +
                                       " returned null; it must return an object or throw");
  return handle;
}

inline std::unique_ptr<Stream> checked_stream(Device& device) {
  return checked(device.make_stream(), device, "make_stream()");
}
inline std::unique_ptr<Event> checked_event(Device& device) {
  return checked(device.make_event(), device, "make_event()");
}
inline std::unique_ptr<Event> checked_timed_event(Device& device) {
  return checked(device.make_timed_event(), device, "make_timed_event()");
}
inline Memory checked_device_memory(Device& device, std::size_t bytes) {
  return checked(device.allocate_device(bytes), bytes, device, "allocate_device()");
}

}  // namespace millrace
