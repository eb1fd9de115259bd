// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/geometry.h>

#include <cstdint>
#include <span>

namespace millrace {

/// Mirrors each row of an RGB image without gaps between its rows, in place. `row` is scratch of at
/// least 3 x width + 1 bytes.
void flip_horizontally(std::uint8_t* pixels, Size size, std::span<std::uint8_t> row);

}  // namespace millrace
