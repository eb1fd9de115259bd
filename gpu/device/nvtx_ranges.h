// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <memory>

namespace millrace {

/// Makes NVTX ranges in the domain "millrace"; null in a build without NVTX's headers.
std::unique_ptr<ProfilerRanges> make_nvtx_ranges();

}  // namespace millrace
