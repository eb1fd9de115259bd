// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <cstdint>
#include <memory>

namespace millrace::c {

/// Opens the device "host" or "cuda:N"; a null name means "host". Throws `Error`
/// (`invalid_argument`) for another name.
std::shared_ptr<Device> open_device(const char* name);
/// Returns the caller's stream on the device of the batches; null for 0, the host. Throws `Error`
/// (`invalid_argument`) for a stream on the host device.
std::shared_ptr<Stream> stream_of(const DeviceId& device, std::uintptr_t stream);

// Functions with two implementations: for builds with CUDA, and for builds without.

/// Opens CUDA device `ordinal`. Throws `Error` (`device`) if it does not exist or millrace was
/// built without CUDA.
std::shared_ptr<Device> open_cuda(int ordinal);
/// Returns the caller's stream of that device. `stream` is a cudaStream_t as an integer.
std::shared_ptr<Stream> cuda_stream(int ordinal, std::uintptr_t stream);
/// Number of a CUDA stream for the caller: a cudaStream_t as an integer; 0 for other streams.
std::uintptr_t number_of(const Stream& stream);

}  // namespace millrace::c
