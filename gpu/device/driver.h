// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA runtime leaves to the driver below it.
#pragma once

#include <driver_types.h>

#include <optional>
#include <string>

namespace millrace {

/// Whether `device` is current for the calling thread, with a context. Makes none. Throws `Error`
/// (`device`).
bool is_current(int device);
/// Puts `device`'s primary context on top of what is current for the calling thread, also where
/// nothing is: to choose a device and then the one before it would make a context on device 0 for
/// threads that have none. Throws `Error` (`device`).
void push_context(int device);
/// Takes it off again; what was current is so as before.
void pop_context(int device) noexcept;

/// Swaps `mode` with the calling thread's, as cudaThreadExchangeStreamCaptureMode does. That needs
/// a current device, this does not. False where it cannot.
bool exchange_capture_mode(cudaStreamCaptureMode& mode) noexcept;

// The runtime makes "not ready" and the like the calling thread's last error, which the trainer
// looks for after its own calls. The driver has no such error. These need a current device.

/// Whether an event has passed. If the driver cannot tell, waits for the event itself and throws
/// `Error` (`device`): the caller may free the memory that the work uses.
bool has_passed(cudaEvent_t event);
/// From one event to another; none where one has not passed or was not recorded.
std::optional<float> milliseconds_between(cudaEvent_t from, cudaEvent_t to);
/// Whether the stream takes no work because of a capture. Throws `Error` (`device`).
bool is_capturing(cudaStream_t stream);

/// Why there are no devices, where cudaGetDeviceCount has said `status`. The kernel tells the
/// driver's version in `version_file`.
std::string why_no_device(cudaError_t status,
                          const char* version_file = "/sys/module/nvidia/version");

}  // namespace millrace
