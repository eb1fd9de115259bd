// SPDX-License-Identifier: Apache-2.0
#include "pixel/conversion_launch.h"
#include "pixel/crop_kernel.h"
#include "pixel/kernels.h"
#include "pixel/mix_kernel.h"

namespace millrace {
namespace {

/// A kind of work that this device has kernels for.
struct KernelEntry {
  /// Name of the launch function, for error messages.
  const char* call;
  /// Launches the kernels. Returns nullopt if `work` is of another kind.
  std::optional<cudaError_t> (*launch)(const DeviceWork& work, cudaStream_t stream);
  cudaError_t (*load)();
};

template <typename Work, cudaError_t (*launch)(const Work&, cudaStream_t)>
std::optional<cudaError_t> launch_if(const DeviceWork& work, cudaStream_t stream) {
  const Work* const arguments = work.as<Work>();
  return arguments != nullptr ? std::optional(launch(*arguments, stream)) : std::nullopt;
}

constexpr KernelEntry kernel_entries[] = {
    {"launch_conversion", launch_if<ConversionWork, kernels::launch_conversion>,
     kernels::load_conversions},
    {"launch_crop", launch_if<CropWork, kernels::launch_crop>, kernels::load_crop},
    {"launch_mix", launch_if<MixWork, kernels::launch_mix>, kernels::load_mix},
};

}  // namespace

std::optional<KernelLaunch> launch_kernel(const DeviceWork& work, cudaStream_t stream) {
  for (const KernelEntry& entry : kernel_entries)
    if (const std::optional<cudaError_t> status = entry.launch(work, stream))
      return KernelLaunch{entry.call, *status};
  return std::nullopt;
}

cudaError_t load_kernels() {
  for (const KernelEntry& entry : kernel_entries)
    if (const cudaError_t status = entry.load(); status != cudaSuccess) return status;
  return cudaSuccess;
}

}  // namespace millrace
