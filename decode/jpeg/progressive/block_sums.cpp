// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h).
#include "jpeg/progressive/block_sums.h"

#include <algorithm>
#include <array>

#include "jpeg/progressive/scan_loops.h"

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/progressive/block_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

/// For each bit of a block's mask, the offset of the bit's coefficient in a `BlockGroup`. The
/// highest bit belongs to the first coefficient in zigzag order.
constexpr std::array<std::uint8_t, 64> offsets_of_bits = [] {
  std::array<std::uint8_t, 64> offsets = zigzag_offsets;
  std::ranges::reverse(offsets);
  return offsets;
}();

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void add_refinements(const std::int16_t* values, const std::uint64_t* masks, std::size_t mask_count,
                     std::int16_t* block) {
  for (std::size_t bit = 0; bit < 64; ++bit) {
    int refined = 0;
    for (std::size_t n = BlockMasks::planes; n < mask_count; ++n)
      refined |= static_cast<int>(masks[n] >> bit & 1) << (n - BlockMasks::planes);
    const bool negative = values[bit] < 0 || (masks[BlockMasks::negative] >> bit & 1) != 0;
    block[offsets_of_bits[bit]] =
        static_cast<std::int16_t>(negative ? values[bit] - refined : values[bit] + refined);
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::CappedTag<std::int16_t, 32>;
using V16 = hn::Vec<D16>;
constexpr std::size_t lanes = hn::MaxLanes(D16());

/// Returns a mask of lanes: lane n is set if bit `bit` + n of `mask` is set.
HWY_INLINE hn::Mask<D16> lanes_of(const std::uint64_t& mask, std::size_t bit) {
  return hn::LoadMaskBits(D16(), reinterpret_cast<const std::uint8_t*>(&mask) + bit / 8);
}

/// Returns the coefficients of the mask bits `bit` to `bit` + `lanes` - 1. The refinement bits are
/// added to the values of the first scan, or subtracted from negative ones.
HWY_INLINE V16 sums_of(const std::int16_t* values, const std::uint64_t* masks,
                       std::size_t mask_count, std::size_t bit) {
  const D16 d;
  const V16 first = hn::Load(d, values + bit);
  if (mask_count == BlockMasks::planes) return first;
  V16 refined = hn::Zero(d);
  for (std::size_t n = BlockMasks::planes; n < mask_count; ++n)
    refined = hn::Or(
        refined,
        hn::IfThenElseZero(lanes_of(masks[n], bit),
                           hn::Set(d, static_cast<std::int16_t>(1 << (n - BlockMasks::planes)))));
  const auto negative =
      hn::Or(lanes_of(masks[BlockMasks::negative], bit), hn::Lt(first, hn::Zero(d)));
  return hn::IfThenElse(negative, hn::Sub(first, refined), hn::Add(first, refined));
}

#if HWY_ARCH_X86_64 && HWY_CAP_GE512

/// For each coefficient of a block, row by row, its mask bit.
constexpr std::array<std::int16_t, 64> bits_of_rows = [] {
  std::array<std::int16_t, 64> bits{};
  for (std::size_t bit = 0; bit < 64; ++bit) {
    const std::size_t offset = offsets_of_bits[bit];
    bits[offset / BlockGroup::row_values * block_side + offset % BlockGroup::row_values] =
        static_cast<std::int16_t>(bit);
  }
  return bits;
}();

HWY_INLINE void add_refinements(const std::int16_t* values, const std::uint64_t* masks,
                                std::size_t mask_count, std::int16_t* block) {
  const D16 d;
  const V16 low = sums_of(values, masks, mask_count, 0);
  const V16 high = sums_of(values, masks, mask_count, lanes);
  const hn::CappedTag<std::int16_t, block_side> of_row;
  alignas(64) std::int16_t rows[64];
  for (std::size_t at = 0; at < 64; at += lanes) {
    const V16 bits = hn::LoadU(d, bits_of_rows.data() + at);
    hn::Store(V16{_mm512_permutex2var_epi16(low.raw, bits.raw, high.raw)}, d, rows + at);
  }
  for (std::size_t row = 0; row < block_side; ++row)
    hn::Store(hn::Load(of_row, rows + row * block_side), of_row,
              block + row * BlockGroup::row_values);
}

#else

HWY_INLINE void add_refinements(const std::int16_t* values, const std::uint64_t* masks,
                                std::size_t mask_count, std::int16_t* block) {
  alignas(64) std::int16_t sums[64];
  for (std::size_t bit = 0; bit < 64; bit += lanes)
    hn::Store(sums_of(values, masks, mask_count, bit), D16(), sums + bit);
  for (std::size_t bit = 0; bit < 64; ++bit) block[offsets_of_bits[bit]] = sums[bit];
}

#endif
#endif

void sum_blocks(const BlockParts& parts, int count, BlockGroup* groups) {
  const std::uint64_t* masks = parts.masks;
  for (int n = 0; n < count; ++n, masks += parts.masks_per_block) {
    std::int16_t* const block = groups[n / BlockGroup::blocks].values.data() +
                                std::ptrdiff_t{n % BlockGroup::blocks} * block_side;
    add_refinements(parts.values + std::size_t{64} * parts.slots[n], masks, parts.masks_per_block,
                    block);
    block[0] = parts.dc[n];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {

HWY_EXPORT(sum_blocks);

void sum_blocks(const BlockParts& parts, int count, BlockGroup* groups) {
  HWY_DYNAMIC_DISPATCH(sum_blocks)(parts, count, groups);
}

}  // namespace millrace::jpeg
#endif
