// SPDX-License-Identifier: Apache-2.0
#include "pixels/pixel_check.h"

#include <millrace/detail/vector_checks.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "pixels/adjust.h"
#include "pixels/blur.h"
#include "pixels/blur_passes.h"

namespace millrace {
namespace {

/// Rows are longer than the longest vector, and their last pixels do not fill a vector.
constexpr Size picture{37, 9};
constexpr std::size_t picture_row_bytes = 3 * std::size_t{37};

void fill(std::vector<std::uint8_t>& pixels) {
  std::uint32_t last = 1;
  for (std::uint8_t& level : pixels) {
    last = last * 1664525U + 1013904223U;
    level = static_cast<std::uint8_t>(last >> 24U);
  }
}

/// Runs the passes of `gaussian_blur` over the middle rows. Its weights are not used, since their
/// last bits depend on the C library's `exp`.
void blur(std::vector<std::uint8_t>& pixels) {
  constexpr float weights[] = {0.4F, 0.2F, 0.1F};
  constexpr std::size_t margin = 6;
  constexpr std::size_t rows = 5;
  std::vector<float> values(picture_row_bytes + 2 * margin + blur_slack);
  std::vector<std::vector<float>> made(rows, std::vector<float>(picture_row_bytes + blur_slack));
  const float* made_rows[rows];
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(pixels.data() + row * picture_row_bytes, picture_row_bytes, values.data() + margin);
    blur_row(values.data() + margin, 3, weights, made[row].data(), picture_row_bytes);
    made_rows[row] = made[row].data();
  }
  blur_column(made_rows, weights, pixels.data() + 2 * picture_row_bytes, picture_row_bytes);
}

}  // namespace

std::uint64_t pixels_checksum() {
  std::vector<std::uint8_t> pixels(picture_row_bytes * static_cast<std::size_t>(picture.height));
  constexpr double radius = 1.4;
  // Made of doubles, so that the memory is aligned for every scratch type.
  std::vector<double> memory(
      std::max(sharpness_memory(picture), extended_box_blur_memory(picture, radius)) /
          sizeof(double) +
      1);
  const std::span<std::uint8_t> scratch(reinterpret_cast<std::uint8_t*>(memory.data()),
                                        memory.size() * sizeof(double));
  XXH3_state_t state{};
  XXH3_64bits_reset(&state);
  const auto check = [&](auto change) {
    fill(pixels);
    change();
    XXH3_64bits_update(&state, pixels.data(), pixels.size());
  };
  // The last adjustment uses float code; the slopes of all earlier ones are integers.
  constexpr Adjustment adjustments[] = {{Property::brightness, 1.3}, {Property::hue, 0.21},
                                        {Property::saturation, 0.6}, {Property::contrast, 1.7},
                                        {Property::brightness, 0.8}, {Property::saturation, 150}};
  check([&] { adjust(pixels, std::span(adjustments).first(2)); });
  check([&] { adjust(pixels, std::span(adjustments).first(5)); });
  check([&] { adjust(pixels, std::span(adjustments).last(1)); });
  check([&] { adjust_sharpness(pixels.data(), picture, 1.9, scratch); });
  check([&] { adjust_sharpness(pixels.data(), picture, 0.3, scratch); });
  check([&] { blur(pixels); });
  check([&] { extended_box_blur(pixels.data(), picture, radius, scratch); });
  return XXH3_64bits_digest(&state);
}

constinit VectorCode pixel_passes{[] { return pixels_checksum() == right_pixels_checksum; }};

}  // namespace millrace
