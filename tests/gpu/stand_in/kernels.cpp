// SPDX-License-Identifier: Apache-2.0
//
// The kernels of gpu/ on the stand-in: the host's version, run late by the stream.
#include "kernel_launch.h"
#include "machine.h"
#include "stand_in_cuda.h"

namespace millrace {

cudaError_t launch_conversion(const ConversionWork& work, cudaStream_t stream) {
  if (const cudaError_t error = testing::stand_in::enter("launch_conversion")) return error;
  if (testing::stand_in::queue_of(stream) == nullptr) return cudaErrorInvalidResourceHandle;
  testing::stand_in::launch(stream, [work] { convert_on_host(work); });
  return cudaSuccess;
}

}  // namespace millrace
