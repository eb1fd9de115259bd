// SPDX-License-Identifier: Apache-2.0
//
// The functions that launch kernels, for kernel_table.cpp. On a GPU they are those of the .cu
// files; tests put the host's version in their place.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/conversion_work.h>
#include <millrace/mix_work.h>

namespace millrace {

/// Enqueues the conversion on `stream` of the current device. Neither allocates nor waits. What is
/// returned is the launch's status.
cudaError_t launch_conversion(const ConversionWork& work, cudaStream_t stream);

/// Has the conversion's kernels loaded to the current device, so that the first launch does not:
/// that may allocate and wait. Fails where there is no code for the device.
cudaError_t load_conversions();

/// The same for erasing and mixing.
cudaError_t launch_mix(const MixWork& work, cudaStream_t stream);
cudaError_t load_mix();

}  // namespace millrace
