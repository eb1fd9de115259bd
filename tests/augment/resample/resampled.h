// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/detail/resample.h>

#include <string>

#include "support/jpeg_samples.h"

namespace millrace::testing {

inline std::size_t row_bytes(int pixels) { return 3 * static_cast<std::size_t>(pixels); }

inline PixelView view_of(const Image& image) {
  return {image.pixels.data(), image.width, image.height, row_bytes(image.width)};
}

inline Image blank(const Region& window) {
  return {
      window.width, window.height, 3,
      std::vector<std::uint8_t>(row_bytes(window.width) * static_cast<std::size_t>(window.height))};
}

inline Image plainly(const Resampling& resampling, const Image& whole) {
  Image made = blank(resampling.window);
  resample_plainly(resampling, view_of(whole), made.pixels.data(), row_bytes(made.width));
  return made;
}

/// Resamples from exactly the region that the resampler needs, in memory of that size. So a
/// sanitizer finds a read beyond it.
inline Image resampled(Resampler& resampler, const Resampling& resampling, const Image& whole) {
  const Region needed = resampler.prepare(resampling);
  EXPECT_GE(needed.x, 0);
  EXPECT_GE(needed.y, 0);
  EXPECT_LE(needed.x + needed.width, whole.width);
  EXPECT_LE(needed.y + needed.height, whole.height);
  Image part = blank(needed);
  for (int y = 0; y < needed.height; ++y)
    std::copy_n(&whole.pixels[row_bytes((needed.y + y) * whole.width + needed.x)],
                row_bytes(needed.width), &part.pixels[row_bytes(y * needed.width)]);
  Image made = blank(resampling.window);
  resampler.run(view_of(part), made.pixels.data(), row_bytes(made.width));
  return made;
}

/// Does the same, but passes one row, then two rows, and so on, each part in memory of its size.
/// Only if `takes_parts` after `prepare`.
inline Image resampled_in_parts(Resampler& resampler, const Resampling& resampling,
                                const Image& whole) {
  const Region needed = resampler.prepare(resampling);
  Image made = blank(resampling.window);
  resampler.begin(made.pixels.data(), row_bytes(made.width));
  for (int top = 0, rows = 1; top < needed.height; top += rows, ++rows) {
    rows = std::min(rows, needed.height - top);
    Image part = blank({0, 0, needed.width, rows});
    for (int y = 0; y < rows; ++y)
      std::copy_n(&whole.pixels[row_bytes((needed.y + top + y) * whole.width + needed.x)],
                  row_bytes(needed.width), &part.pixels[row_bytes(y * needed.width)]);
    resampler.add(view_of(part));
  }
  return made;
}

inline Resampling whole_of(Size from, Size to) {
  return {.from = from, .to = to, .window = {0, 0, to.width, to.height}};
}

}  // namespace millrace::testing
