// SPDX-License-Identifier: Apache-2.0
// For millrace's own folders.
#pragma once

#include <millrace/detail/instruction_sets.h>

namespace MILLRACE_API millrace {

/// The vector code of `resample/`, and the vector code of `pixels/`.
extern VectorCode resample_passes;
extern VectorCode pixel_passes;

/// Runs the self-checks of all vector code that has not been checked yet. Returns the resulting
/// instruction sets. Throws as `check_instruction_set` does. Thread-safe.
InstructionSets checked_instruction_sets();

}  // namespace millrace
