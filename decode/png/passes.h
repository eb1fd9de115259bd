// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

namespace millrace {

/// The grid of the pixels that a pass holds (PNG, third edition, 8.2: Adam7): its first column and
/// row, and the distances between its columns and rows.
struct PngPass {
  int left, top, step_x, step_y;

  /// Returns the number of the pass's columns; 0 or less if the image is too narrow. `rows` does
  /// the same for its rows.
  int columns(int width) const { return (width - left + step_x - 1) / step_x; }
  int rows(int height) const { return (height - top + step_y - 1) / step_y; }
};

/// Returns the passes of an image in the order of the file. A pass without columns has no rows in
/// the file.
inline std::span<const PngPass> png_passes(bool interlaced) {
  static constexpr std::array<PngPass, 7> adam7{{{0, 0, 8, 8},
                                                 {4, 0, 8, 8},
                                                 {0, 4, 4, 8},
                                                 {2, 0, 4, 4},
                                                 {0, 2, 2, 4},
                                                 {1, 0, 2, 2},
                                                 {0, 1, 1, 2}}};
  static constexpr std::array<PngPass, 1> in_order{{{0, 0, 1, 1}}};
  if (interlaced) return adam7;
  return in_order;
}

}  // namespace millrace
