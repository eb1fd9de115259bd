// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>
#include <millrace/operation.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

/// One border around an image.
struct Border {
  Padding padding;
  PaddingMode mode;
  Colour fill;
};

/// The borders around a resized image, and the part of both that an output shows. Borders are made
/// along one axis and then along the other. So each column and each row of the output has one
/// source.
struct PaddingMap {
  /// From the innermost to the outermost.
  std::vector<Border> borders{};
  /// The source of each column and row of the output: a column or row of the resized image, or a
  /// number below 0. -1 means beyond all borders, -2 the outermost border's colour, -3 the next
  /// one's, and so on. Where a column and a row both have a colour, the outer border's is shown.
  /// Empty until `show`.
  std::vector<int> columns{};
  std::vector<int> rows{};

  /// Returns the size of an image of size `inner` with its borders.
  Size outer(Size inner) const;

  /// Sets the output to `region` of the image with its borders. Without them the image's size is
  /// `inner`.
  void show(const Region& region, Size inner);
  bool shown() const { return !columns.empty(); }

  /// The part of the resized image that the output needs, and the part's place in the output if the
  /// output has all of it.
  struct Window {
    Region region;
    int x;
    int y;
  };
  Window window() const { return window_; }
  bool holds_window() const { return holds_window_; }

  /// Fills the output. `window` has the pixels of `resampling`'s window, in rows `stride` bytes
  /// apart. `window` may be the window's place in the output.
  void fill(const Resampling& resampling, const std::uint8_t* window, std::size_t stride,
            std::uint8_t* output) const;

 private:
  Window window_{};
  bool holds_window_ = false;
};

}  // namespace millrace
