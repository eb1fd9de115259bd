// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <cstring>

#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Returns whether the decoder gives the reference's pixels of a region, and only these.
inline ::testing::AssertionResult same_region(JpegDecoder& decoder, const Bytes& encoded,
                                              const Image& reference, const Region& region,
                                              int reduction = 1) {
  if (const Status status = decoder.open(encoded); !status.is_ok())
    return ::testing::AssertionFailure() << status.reason();
  PixelView view;
  const Status status = reduction == 1 ? decoder.decode(region, view)
                                       : decoder.decode_reduced(region, reduction, view);
  if (!status.is_ok()) return ::testing::AssertionFailure() << status.reason();
  if (view.width != region.width || view.height != region.height)
    return ::testing::AssertionFailure() << "a view of another size";
  for (int row = 0; row < region.height; ++row) {
    const auto offset = static_cast<std::size_t>((region.y + row) * reference.width + region.x) * 3;
    const std::uint8_t* made = view.pixels + static_cast<std::size_t>(row) * view.stride;
    if (std::memcmp(made, reference.pixels.data() + offset,
                    static_cast<std::size_t>(region.width) * 3) != 0)
      return ::testing::AssertionFailure()
             << "row " << row << " differs in region " << region.width << " x " << region.height
             << " at (" << region.x << ", " << region.y << ") of " << reference.width << " x "
             << reference.height;
  }
  return ::testing::AssertionSuccess();
}

/// Returns a region with edges anywhere; often a single column or row, often at the image's edges.
inline Region any_region(Random& random, int width, int height) {
  const auto side = [&](int extent, int& from, int& length) {
    const auto below = [&](int bound) {
      return static_cast<int>(random() % static_cast<unsigned>(bound));
    };
    length = below(3) == 0 ? 1 + below(std::min(extent, 4)) : 1 + below(extent);
    const int free = extent - length;
    const int place = below(4);
    from = place == 0 ? 0 : place == 1 ? free : below(free + 1);
  };
  Region region;
  side(width, region.x, region.width);
  side(height, region.y, region.height);
  return region;
}

}  // namespace millrace::testing
