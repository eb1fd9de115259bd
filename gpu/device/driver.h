// SPDX-License-Identifier: Apache-2.0
//
// Functions that the CUDA runtime lacks, built on the driver's API.
#pragma once

#include <driver_types.h>

#include <optional>
#include <string>

namespace millrace {

/// Whether `device` is current for the calling thread, with a context. Does not make a context.
/// Throws `Error` (`device`).
bool is_current(int device);
/// Pushes `device`'s primary context on the calling thread's stack of contexts, which may be empty.
/// Choosing a device and then the previous one would instead make a context on device 0 for threads
/// without one. Throws `Error` (`device`).
void push_context(int device);
/// Pops the context, and restores the state before the push.
void pop_context(int device) noexcept;

/// Swaps `mode` with the calling thread's mode, like cudaThreadExchangeStreamCaptureMode, but
/// without a current device. Returns false on failure.
bool exchange_capture_mode(cudaStreamCaptureMode& mode) noexcept;

// The functions below need a current device. They use the driver, which does not keep a last error.
// The runtime would store "not ready" and similar results as the calling thread's last error. The
// trainer checks that error after its own calls.

/// Whether an event has passed. If the query fails, waits for the event and then throws `Error`
/// (`device`). After the error the caller may free memory that the device's work uses.
bool has_passed(cudaEvent_t event);
/// Time from one event to another; nullopt if one has not passed or was not recorded. Throws
/// `Error` (`device`).
std::optional<float> milliseconds_between(cudaEvent_t from, cudaEvent_t to);
/// Whether the stream rejects work because of a capture. Throws `Error` (`device`).
bool is_capturing(cudaStream_t stream);

/// Returns the reason why cudaGetDeviceCount failed with `status`. The kernel provides the driver's
/// version in `version_file`.
std::string why_no_device(cudaError_t status,
                          const char* version_file = "/sys/module/nvidia/version");

}  // namespace millrace
