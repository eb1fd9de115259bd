// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"

namespace millrace::jpeg {

/// A component's quantisation steps, in the layout of a `BlockGroup`'s coefficients.
class StepsOfGroup {
 public:
  void set(const std::array<std::uint16_t, 64>& steps) {
    for (std::size_t n = 0; n < values_.size(); ++n)
      values_[n] = static_cast<std::int16_t>(
          steps[n / BlockGroup::row_values * block_side + n % block_side]);
  }
  const std::int16_t* values() const { return values_.data(); }

 private:
  alignas(64) std::array<std::int16_t, 256> values_{};
};

/// Transforms `count` groups of quantised coefficients to samples: eight rows, `stride` bytes
/// apart, of 32 samples for each group. The samples equal those of libjpeg-turbo's slow integer
/// transform (jidctint: C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical Fast 1-D DCT Algorithms
/// with 11 Multiplications", 1989) in its x86 vector code, to the bit. That holds for any
/// coefficients: 16-bit sums wrap around where those of libjpeg-turbo do.
void inverse_transform(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                       std::uint8_t* samples, std::size_t stride);

/// Makes `side` (4, 2 or 1) rows of `side` samples of each block: a transform of `side` points of
/// its lowest frequencies, at the amplitude of the whole transform. The results are rounded, and
/// equal on all processors, but differ from those of other decoders.
void inverse_transform_reduced(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                               int side, std::uint8_t* samples, std::size_t stride);

/// Returns the last place, in the zigzag order, of the coefficients that a transform of `side`
/// points uses.
inline int last_place_of(int side) { return side == 8 ? 63 : side == 4 ? 24 : side == 2 ? 4 : 0; }

/// Does what `inverse_transform` does in plain code, for one block of a group.
void inverse_transform_plain(const std::int16_t* block, const std::int16_t* steps,
                             std::uint8_t* samples, std::size_t stride);

}  // namespace millrace::jpeg

namespace millrace::jpeg::idct {

/// The factors are scaled by 2^13; the first pass keeps 2 bits more than the samples have.
inline constexpr int scale_bits = 13;
inline constexpr int kept_bits = 2;
inline constexpr int first_shift = scale_bits - kept_bits;
inline constexpr int second_shift = scale_bits + kept_bits + 3;

/// The factors of jidctint, and their sums. With these sums each output needs few products of
/// pairs.
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
