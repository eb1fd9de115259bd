// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Returns the image as a file with this EXIF orientation stores it. Source: Exif 2.32, 4.6.4,
/// which states where the file's row 0 and column 0 are seen.
inline Image stored_as(const Image& upright, int orientation) {
  const bool exchanged = orientation >= 5;
  Image stored = upright;
  if (exchanged) std::swap(stored.width, stored.height);
  for (int row = 0; row < stored.height; ++row)
    for (int column = 0; column < stored.width; ++column) {
      const bool row_0_is_right_or_bottom =
          orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
      const bool column_0_is_right_or_bottom =
          orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
      int down = row_0_is_right_or_bottom ? stored.height - 1 - row : row;
      int across = column_0_is_right_or_bottom ? stored.width - 1 - column : column;
      if (exchanged) std::swap(down, across);
      const auto at = [](const Image& image, int x, int y) {
        return static_cast<std::size_t>(y * image.width + x) * 3;
      };
      std::memcpy(&stored.pixels[at(stored, column, row)],
                  &upright.pixels[at(upright, across, down)], 3);
    }
  return stored;
}

/// Returns the JPEG with an EXIF segment that has this orientation.
inline Bytes with_orientation(const Bytes& encoded, int orientation) {
  constexpr std::array<unsigned char, 36> segment{
      0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,   // the segment, and its name
      'M',  'M',  0, 42, 0,   0,   0,   8,           // big-endian TIFF, its directory at 8
      0,    1,    1, 18, 0,   3,   0,   0,   0, 1};  // one entry: tag 0x0112, SHORT, one value
  Bytes made(encoded.begin(), encoded.begin() + 2);
  for (const unsigned char byte : segment) made.push_back(std::byte{byte});
  made[2 + 29] = static_cast<std::byte>(orientation);
  made.insert(made.end(), encoded.begin() + 2, encoded.end());
  return made;
}

}  // namespace millrace::testing
