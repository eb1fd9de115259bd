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

/// The borders around a resized image, and what an output shows of all that. Since borders are made
/// along one axis and then along the other, each column and each row of the output has one source.
struct Frame {
  /// From the innermost to the outermost.
  std::vector<Border> borders{};
  /// What each column and row of the output shows: one of the resized image, or something below 0:
  /// -1 is what lies beyond all borders, -2 the outermost border's colour, -3 the next one's, and
  /// so on. Where a column and a row have both, the outer one is seen. Empty until `show`.
  std::vector<int> columns{};
  std::vector<int> rows{};

  /// The size of an image of `inner` with its borders.
  Size outer(Size inner) const;

  /// Makes an output of this region of the image of `inner` with its borders.
  void show(const Region& region, Size inner);
  bool shown() const { return !columns.empty(); }

  /// The part of the resized image that the output is made of, and where that itself comes to in
  /// the output, if it is all there.
  struct Window {
    Region region;
    int x;
    int y;
  };
  Window window() const { return window_; }
  bool holds_window() const { return holds_window_; }

  /// Fills the output: `window` is that of `resampling`, with rows `stride` bytes apart, and may be
  /// the place in the output where it comes to.
  void fill(const Resampling& resampling, const std::uint8_t* window, std::size_t stride,
            std::uint8_t* output) const;

 private:
  Window window_{};
  bool holds_window_ = false;
};

}  // namespace millrace
