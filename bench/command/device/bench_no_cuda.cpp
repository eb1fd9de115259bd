// SPDX-License-Identifier: Apache-2.0
//
// Replaces bench_cuda.cpp in builds without CUDA.
#include <millrace/error.h>

#include "command/device/open_device.h"

namespace millrace::cli {

std::shared_ptr<const BenchDevice> open_cuda_bench_device(int /*ordinal*/) {
  throw Error(ErrorCode::device,
              "no CUDA device: this millrace was built without CUDA; build it with "
              "-DMILLRACE_CUDA=ON, or give --device host");
}

}  // namespace millrace::cli
