// SPDX-License-Identifier: Apache-2.0
#include "geometry/flip.h"

#include <cstring>

namespace millrace {

void flip_horizontally(std::uint8_t* pixels, Size size, std::span<std::uint8_t> row) {
  const auto width = static_cast<std::size_t>(size.width);
  for (int y = 0; y < size.height; ++y, pixels += 3 * width) {
    std::memcpy(row.data(), pixels, 3 * width);
    const std::uint8_t* from = row.data() + 3 * (width - 1);
    std::uint8_t* to = pixels;
    // Four bytes at once are fastest; the fourth is overwritten by the next pixel. The row's
    // scratch has one byte more to read.
    for (std::size_t x = 1; x < width; ++x, from -= 3, to += 3) std::memcpy(to, from, 4);
    std::memcpy(to, from, 3);
  }
}

}  // namespace millrace
