// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <cstdint>
#include <memory>

namespace millrace::c {

/// "host" (also null) or "cuda:N". Throws `Error` (`invalid_argument`) for another name.
std::shared_ptr<Device> open_device(const char* name);
/// The caller's stream on the device that batches are on; null for 0, which is the host. Throws
/// `Error` (`invalid_argument`) for a stream of the host.
std::shared_ptr<Stream> stream_of(const DeviceId& device, std::uintptr_t stream);

// One of two sources has these: with CUDA and without.

/// CUDA device `ordinal`. Throws `Error` (`device`) where there is none, or millrace has no CUDA.
std::shared_ptr<Device> open_cuda(int ordinal);
/// The caller's stream of that device, a cudaStream_t as an integer.
std::shared_ptr<Stream> cuda_stream(int ordinal, std::uintptr_t stream);

}  // namespace millrace::c
