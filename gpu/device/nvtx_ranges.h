// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <memory>

namespace millrace {

/// Ranges of NVTX in the domain "millrace"; null where this was compiled without NVTX's headers.
std::unique_ptr<ProfilerRanges> make_nvtx_ranges();

}  // namespace millrace
