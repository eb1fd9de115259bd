// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/transform.h>

#include <cstdint>

namespace MILLRACE_API millrace {

/// Returns the position of a sample in the run's order (`Order`), the same on any number of ranks.
/// The rows of a batch of a rank have consecutive positions, but for padding. A replacement of a
/// bad record has the position of the record. Returns 0 outside of a pipeline. For the thread of
/// the sample.
std::uint64_t position_of(const Sample& sample);

}  // namespace millrace
