// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA runtime leaves to the driver below it.
#pragma once

#include <driver_types.h>

#include <string>

namespace millrace {

/// Puts `device`'s primary context on top of what is current for the calling thread, also where
/// nothing is: to choose a device and then the one before it would make a context on device 0 for
/// threads that have none. Throws `Error` (`device`).
void push_context(int device);
/// Takes it off again; what was current is so as before.
void pop_context(int device) noexcept;

/// Why there are no devices, where cudaGetDeviceCount has said `status`. The kernel tells the
/// driver's version in `version_file`.
std::string why_no_device(cudaError_t status,
                          const char* version_file = "/sys/module/nvidia/version");

}  // namespace millrace
