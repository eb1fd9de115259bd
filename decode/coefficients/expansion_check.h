// SPDX-License-Identifier: Apache-2.0
//
// The self-check of the vector code that expands tiles.
#pragma once

#include <millrace/detail/instruction_sets.h>

#include <array>
#include <cstdint>

#include "coefficients/layout.h"

namespace millrace::coefficients {

/// Compares the packing and the expansion of made-up tiles with the plain ones.
extern VectorCode expansion;

/// Returns whether the samples that are made straight from a tile are those of plain code. Only
/// where `jpeg::has_vbmi2`. Magnitudes times steps may be up to 350: then no sum exceeds 16 bits.
bool transforms_as_plainly(const std::uint8_t* tile,
                           const std::array<std::uint16_t, block_values>& steps);

}  // namespace millrace::coefficients
