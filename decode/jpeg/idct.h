// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/block_arithmetic.h>

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
/// with 11 Multiplications", 1989) in its x86 vector code, to the bit. This holds for any
/// coefficients: 16-bit sums wrap around where those of libjpeg-turbo do.
void inverse_transform(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                       std::uint8_t* samples, std::size_t stride);

/// Makes `side` (4, 2 or 1) rows of `side` samples of each block: a transform of `side` points of
/// its lowest frequencies, at the amplitude of the whole transform. The results are rounded, and
/// equal on all processors, but differ from those of other decoders.
void inverse_transform_reduced(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                               int side, std::uint8_t* samples, std::size_t stride);

/// Returns the last zigzag index of the coefficients that a transform of `side` points uses.
inline int last_place_of(int side) { return side == 8 ? 63 : side == 4 ? 24 : side == 2 ? 4 : 0; }

/// Does in plain code what `inverse_transform` does, for one block of a group.
void inverse_transform_plain(const std::int16_t* block, const std::int16_t* steps,
                             std::uint8_t* samples, std::size_t stride);

}  // namespace millrace::jpeg
