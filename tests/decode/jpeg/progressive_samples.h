// SPDX-License-Identifier: Apache-2.0
//
// Pictures for progressive JPEGs that our own stages decode.
#pragma once

#include <millrace/random.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Name of the decoder of progressive JPEGs that the stages decode.
inline constexpr const char* by_stages = "millrace (progressive)";

/// The samplings that the stages decode; grey has one component.
struct Sampling {
  const char* name;
  int h, v, components;
};
inline constexpr Sampling own_samplings[] = {{"4:4:4", 1, 1, 3},
                                             {"4:2:2", 2, 1, 3},
                                             {"4:2:0", 2, 2, 3},
                                             {"4:4:0", 1, 2, 3},
                                             {"grey", 2, 2, 1}};

inline Bytes baseline_of(const Image& image, const Sampling& sampling, int quality) {
  return encode(image,
                {.h = {sampling.h, 1, 1, 1}, .v = {sampling.v, 1, 1, 1}, .quality = quality});
}

inline Bytes baseline(const Sampling& sampling, int width, int height, unsigned seed,
                      int quality = 90) {
  return baseline_of(noise(width, height, seed, sampling.components), sampling, quality);
}

/// Noise in a few places of a grey area, so that ends of band reach over many rows of blocks.
inline Image sparse_noise(int width, int height, unsigned seed, int channels) {
  Image image = noise(width, height, seed, channels);
  Random random(seed, 0);
  const auto row_bytes = static_cast<std::size_t>(width * channels);
  bool is_kept = true;
  for (int y = 0; y < height; ++y) {
    if (y % 16 == 0) is_kept = random() % 4 == 0;
    const auto row = image.pixels.begin() + static_cast<std::ptrdiff_t>(row_bytes) * y;
    const auto kept = static_cast<std::ptrdiff_t>(is_kept ? row_bytes / 2 : 0);
    std::fill(row + kept, row + static_cast<std::ptrdiff_t>(row_bytes), std::uint8_t{90});
  }
  return image;
}

}  // namespace millrace::testing
