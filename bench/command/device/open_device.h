// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "measure/device/bench_device.h"

namespace millrace::cli {

/// Whether `name` is "host" or "cuda:N".
bool is_bench_device(const std::string& name);
/// Opens a device by name. `copy_bytes_per_second` limits copies on the host, to imitate a bus; 0 =
/// unlimited. Throws `Error`: `invalid_argument` for another name, `device` "no CUDA device ..." if
/// it does not exist.
std::shared_ptr<const BenchDevice> open_bench_device(const std::string& name,
                                                     double copy_bytes_per_second = 0);

/// Defined in bench_cuda.cpp, and in bench_no_cuda.cpp, which throws. A program links one of the
/// two.
std::shared_ptr<const BenchDevice> open_cuda_bench_device(int ordinal);

}  // namespace millrace::cli
