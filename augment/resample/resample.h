// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/geometry.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

/// An image of size `from` resized to `to`, of which the pixels in `window` (inside `to`, not
/// empty) are wanted.
struct Resampling {
  Size from;
  Size to;
  Region window;
};

/// Resizes 8-bit RGB with OpenCV: as long as both sides shrink to half or less, means of 2 x 2
/// pixels; then bilinear. After n halvings up to 2^n - 1 source pixels at the right and bottom
/// edges, less than one pixel made, go unused. The pixels of a window equal those of the whole
/// resized image, to the bit. It keeps its scratch, which only grows, until `trim` finds it large,
/// and is not for two threads at once.
class Resampler {
 public:
  /// Tells which part of the source image the window is made of.
  static Region needed(const Resampling& resampling);
  /// Tells how much scratch `run` takes, in bytes.
  static std::uint64_t scratch_bytes(const Resampling& resampling);

  /// Makes the window from `source`, which shows the `needed` region, into rows that are `stride`
  /// bytes apart.
  void run(const Resampling& resampling, const PixelView& source, std::uint8_t* window,
           std::size_t stride);
  /// Gives scratch of more than 16 MiB back.
  void trim();

 private:
  using Pixels = std::vector<std::uint8_t>;

  void cut_from_more(const Resampling& resampling, const PixelView& view, std::uint8_t* window,
                     std::size_t stride);

  std::array<Pixels, 2> halves_;
  Pixels source_;
  Pixels resized_;
};

}  // namespace millrace
