// SPDX-License-Identifier: Apache-2.0
//
// The kernels of gpu/ on the stand-in: their own source, as the host's compiler reads it, run late
// by the stream.
#include "stand_in/kernel_on_host.h"
#include "stand_in/machine.h"
#include "stand_in/stand_in_cuda.h"

namespace {

/// A kernel that takes `Arguments`. One with a barrier runs each block twice (kernel_on_host.h).
template <typename Arguments, bool has_barrier>
cudaError_t run_by_the_stream(const void* kernel, dim3 grid, dim3 block, void** parameters,
                              std::size_t /*shared_bytes*/, cudaStream_t stream) {
  const auto function = reinterpret_cast<void (*)(Arguments)>(const_cast<void*>(kernel));
  using namespace millrace::testing::stand_in;
  std::unique_lock lock(machine().mutex);
  const cudaStream_t queue = stream_of(stream);
  if (queue == nullptr || queue->device != current_device())
    return told(cudaErrorInvalidResourceHandle);
  return told(give_locked(
      stream, [function, grid, block, arguments = *static_cast<Arguments*>(parameters[0]),
               delay = machine().copy_delay] {
        std::this_thread::sleep_for(delay);
        blockDim = block;
        gridDim = grid;
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
          for (int time = 0; time < (has_barrier ? 2 : 1); ++time)
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) function(arguments);
      }));
}

}  // namespace

#define cudaLaunchKernel run_by_the_stream<kernels::Arguments, true>
#define launch_conversion launch_conversion_kernel
#include "pixel/conversion_kernel.cu"
#undef launch_conversion
#undef cudaLaunchKernel
#define cudaLaunchKernel run_by_the_stream<kernels::MixArguments, false>
#define launch_mix launch_mix_kernel
#include "pixel/mix_kernel.cu"
#undef launch_mix
#undef cudaLaunchKernel

namespace millrace {

cudaError_t launch_conversion(const ConversionWork& work, cudaStream_t stream) {
  return testing::stand_in::call("launch_conversion",
                                 [&] { return launch_conversion_kernel(work, stream); });
}

cudaError_t launch_mix(const MixWork& work, cudaStream_t stream) {
  return testing::stand_in::call("launch_mix", [&] { return launch_mix_kernel(work, stream); });
}

}  // namespace millrace
