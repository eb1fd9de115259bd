// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic for the blocks and pixels of a JPEG. Scalar host code and CUDA kernels
// (compiled by nvcc) call the same functions, so their results have the same bits. For millrace's
// own folders; not installed.
#pragma once

#include <millrace/detail/pixel_arithmetic.h>

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg::idct {

/// Fraction bits: 13 of the factors, and 2 of the first pass's results.
inline constexpr int scale_bits = 13;
inline constexpr int kept_bits = 2;
inline constexpr int first_shift = scale_bits - kept_bits;
inline constexpr int second_shift = scale_bits + kept_bits + 3;

/// Factors of libjpeg's jidctint.c, followed by their sums. With the sums, each output needs fewer
/// products.
inline constexpr int f0_298 = 2446, f0_390 = 3196, f0_541 = 4433, f0_765 = 6270, f0_899 = 7373,
                     f1_175 = 9633, f1_501 = 12299, f1_847 = 15137, f1_961 = 16069, f2_053 = 16819,
                     f2_562 = 20995, f3_072 = 25172;

inline constexpr int even2_by_2 = f0_541, even2_by_6 = f0_541 - f1_847;
inline constexpr int even3_by_2 = f0_541 + f0_765, even3_by_6 = f0_541;
inline constexpr int turn3_by_73 = f1_175 - f1_961, turn3_by_51 = f1_175;
inline constexpr int turn4_by_73 = f1_175, turn4_by_51 = f1_175 - f0_390;
inline constexpr int odd0_by_7 = f0_298 - f0_899, odd0_by_1 = -f0_899;
inline constexpr int odd1_by_5 = f2_053 - f2_562, odd1_by_3 = -f2_562;
inline constexpr int odd2_by_5 = -f2_562, odd2_by_3 = f3_072 - f2_562;
inline constexpr int odd3_by_7 = -f0_899, odd3_by_1 = f1_501 - f0_899;

}  // namespace millrace::jpeg::idct

namespace millrace::jpeg {

/// Returns the low 16 bits of a sum or product, as a 16-bit vector lane holds them.
MILLRACE_HOST_DEVICE inline std::int16_t wrapped(int value) {
  return static_cast<std::int16_t>(value);
}

MILLRACE_HOST_DEVICE inline std::int16_t saturated(int value) {
  return static_cast<std::int16_t>(value < -32768 ? -32768 : value > 32767 ? 32767 : value);
}

/// Returns the nearest 8-bit value.
MILLRACE_HOST_DEVICE inline std::uint8_t clamped(int value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// Returns a * by + b * times. Wraps around as a 32-bit vector lane does.
MILLRACE_HOST_DEVICE inline int sum_of_products(int a, int by, int b, int times) {
  return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(by) +
                          static_cast<unsigned>(b) * static_cast<unsigned>(times));
}
MILLRACE_HOST_DEVICE inline int wrapping_sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
MILLRACE_HOST_DEVICE inline int wrapping_difference(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) - static_cast<unsigned>(b));
}

/// Transforms eight values, `step` apart, in place: one pass of the inverse transform that idct.h
/// describes.
MILLRACE_HOST_DEVICE inline void transform_eight(std::int16_t* values, std::size_t step,
                                                 int shift) {
  using namespace idct;
  int in[8];
  for (std::size_t n = 0; n < 8; ++n) in[n] = values[n * step];
  const int round = 1 << (shift - 1);
  const int even0 = sum_of_products(wrapped(in[0] + in[4]), 1 << scale_bits, 0, 0);
  const int even1 = sum_of_products(wrapped(in[0] - in[4]), 1 << scale_bits, 0, 0);
  const int even2 = sum_of_products(in[2], even2_by_2, in[6], even2_by_6);
  const int even3 = sum_of_products(in[2], even3_by_2, in[6], even3_by_6);
  const int both73 = wrapped(in[7] + in[3]);
  const int both51 = wrapped(in[5] + in[1]);
  const int turn3 = sum_of_products(both73, turn3_by_73, both51, turn3_by_51);
  const int turn4 = sum_of_products(both73, turn4_by_73, both51, turn4_by_51);
  const int even[] = {wrapping_sum(even0, even3), wrapping_sum(even1, even2),
                      wrapping_difference(even1, even2), wrapping_difference(even0, even3)};
  const int odd[] = {wrapping_sum(turn4, sum_of_products(in[7], odd3_by_7, in[1], odd3_by_1)),
                     wrapping_sum(turn3, sum_of_products(in[5], odd2_by_5, in[3], odd2_by_3)),
                     wrapping_sum(turn4, sum_of_products(in[5], odd1_by_5, in[3], odd1_by_3)),
                     wrapping_sum(turn3, sum_of_products(in[7], odd0_by_7, in[1], odd0_by_1))};
  for (std::size_t n = 0; n < 4; ++n) {
    const int rounded = wrapping_sum(even[n], round);
    values[n * step] = saturated(wrapping_sum(rounded, odd[n]) >> shift);
    values[(7 - n) * step] = saturated(wrapping_difference(rounded, odd[n]) >> shift);
  }
}

/// Samples of one component (luminance or chroma) of a part of an image.
struct SamplePlane {
  const std::uint8_t* samples = nullptr;
  std::size_t stride = 0;
  /// Column and row of the first sample in the whole image's plane.
  int x = 0;
  int y = 0;

  MILLRACE_HOST_DEVICE int at(int column, int row) const {
    return samples[static_cast<std::size_t>(row - y) * stride +
                   static_cast<std::size_t>(column - x)];
  }
};

/// Chroma subsampling of an image.
struct ChromaGrid {
  /// Pixels per chroma sample along each axis: 1 or 2.
  int across = 1;
  int down = 1;
  /// Size in samples of the whole image's chroma planes.
  int width = 0;
  int height = 0;
};

/// Returns the chroma of a pixel as libjpeg-turbo's "fancy" upsampling makes it. Along each
/// subsampled axis it is 3/4 of the nearer sample plus 1/4 of the farther one. At the image's edge
/// a sample is its own neighbour.
MILLRACE_HOST_DEVICE inline int smoothed_chroma(const SamplePlane& plane, const ChromaGrid& grid,
                                                int x, int y) {
  const auto beside = [](int near_one, bool before, int count) {
    const int far_one = near_one + (before ? -1 : 1);
    return far_one < 0 || far_one == count ? near_one : far_one;
  };
  const int column = x / grid.across;
  const int row = y / grid.down;
  const bool left = x % 2 == 0;
  const bool upper = y % 2 == 0;
  if (grid.across == 1 && grid.down == 1) return plane.at(column, row);
  if (grid.across == 1)
    return (3 * plane.at(column, row) + plane.at(column, beside(row, upper, grid.height)) +
            (upper ? 1 : 2)) >>
           2;
  const int far_column = beside(column, left, grid.width);
  if (grid.down == 1)
    return (3 * plane.at(column, row) + plane.at(far_column, row) + (left ? 1 : 2)) >> 2;
  const int far_row = beside(row, upper, grid.height);
  const int here = 3 * plane.at(column, row) + plane.at(column, far_row);
  const int far_sum = 3 * plane.at(far_column, row) + plane.at(far_column, far_row);
  return (3 * here + far_sum + (left ? 8 : 7)) >> 4;
}

/// An 8-bit pixel.
struct Rgb {
  std::uint8_t red, green, blue;
};

/// Converts YCbCr to RGB by the equations of JFIF 1.02 with 16 bits of fraction, as libjpeg-turbo
/// does.
MILLRACE_HOST_DEVICE inline Rgb rgb_of(int light, int cb, int cr) {
  constexpr int half = 1 << 15;
  const int blue = cb - 128;
  const int red = cr - 128;
  return {clamped(light + ((91881 * red + half) >> 16)),
          clamped(light + ((-22554 * blue - 46802 * red + half) >> 16)),
          clamped(light + ((116130 * blue + half) >> 16))};
}

}  // namespace millrace::jpeg
