// SPDX-License-Identifier: Apache-2.0
//
// The self-check of the vector code that expands tiles.
#pragma once

#include <millrace/detail/instruction_sets.h>

namespace millrace::coefficients {

/// Compares the packing and the expansion of made-up tiles with the plain ones.
extern VectorCode expansion;

}  // namespace millrace::coefficients
