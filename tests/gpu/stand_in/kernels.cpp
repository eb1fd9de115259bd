// SPDX-License-Identifier: Apache-2.0
//
// The kernels of gpu/ on the stand-in: their own source, compiled for the host, and run later by
// the stream.
#include "stand_in/kernel_on_host.h"
#include "stand_in/machine.h"
#include "stand_in/stand_in_cuda.h"

namespace {

/// Maximal threads in a block, for all GPUs.
constexpr unsigned max_threads = 1024;

/// Runs all blocks one after the other.
template <typename Arguments>
void run_blocks(void (*kernel)(Arguments), dim3 grid, dim3 block, const Arguments& arguments) {
  thread_local millrace::testing::stand_in::BlockThreads threads;
  blockDim = block;
  gridDim = grid;
  for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
    threads.run(
        block.x, blockIdx.x % 2 == 1, [&] { kernel(arguments); },
        [](unsigned number) { threadIdx.x = number; });
}

template <typename Arguments>
cudaError_t run_by_the_stream(const void* kernel, dim3 grid, dim3 block, void** parameters,
                              std::size_t /*shared_bytes*/, cudaStream_t stream) {
  const auto function = reinterpret_cast<void (*)(Arguments)>(const_cast<void*>(kernel));
  using namespace millrace::testing::stand_in;
  return call("cudaLaunchKernel", [&] {
    std::unique_lock lock(machine().mutex);
    const cudaStream_t queue = stream_of(stream);
    if (queue == nullptr || queue->device != current_device())
      return cudaErrorInvalidResourceHandle;
    if (grid.x == 0 || block.x == 0 || block.x > max_threads) return cudaErrorInvalidConfiguration;
    return give_locked(stream,
                       [function, grid, block, arguments = *static_cast<Arguments*>(parameters[0]),
                        delay = machine().copy_delay] {
                         std::this_thread::sleep_for(delay);
                         run_blocks(function, grid, block, arguments);
                       });
  });
}

}  // namespace

#define cudaLaunchKernel run_by_the_stream<Arguments>  // where enqueue.h calls it
#include "pixel/kernels.cu"
#undef cudaLaunchKernel
