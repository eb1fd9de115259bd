// SPDX-License-Identifier: Apache-2.0
//
// The self-check of the vector code that expands tiles.
#pragma once

#include <millrace/detail/instruction_sets.h>

#include <array>
#include <cstdint>

#include "coefficients/layout.h"

namespace millrace::coefficients {

/// The vector code that packs and expands tiles. Its check compares its results for generated tiles
/// with those of plain code.
extern VectorCode expansion;

/// Returns whether the samples that are made directly from a tile equal those of plain code. Call
/// it only if there is a `tile_transform()`. Each magnitude times its step must be at most 350, so
/// that no sum exceeds 16 bits.
bool transforms_as_plainly(const std::uint8_t* tile,
                           const std::array<std::uint16_t, block_values>& steps);

}  // namespace millrace::coefficients
