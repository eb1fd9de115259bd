// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), since newer ones have faster
// shifts and BMI2's pdep.
#include "jpeg/progressive/scan_loops.h"

#include <bit>

#include "jpeg/progressive/fast_pdep.h"

// A better target has a lower bit. So this disables all targets with AVX-512, whatever their names.
#define HWY_DISABLED_TARGETS (HWY_AVX2 - 1)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/progressive/scan_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "jpeg/blocks-inl.h"
#include "jpeg/progressive/refinement-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

/// A symbol of a first scan that `decode_first` does not find in its table.
struct FirstSymbol {
  enum Kind { coefficient, zeros, end_of_band, invalid };
  Kind kind;
  ScanBits rest;
  std::uint32_t zigzag_index;
  std::int32_t value;
  std::uint32_t run;
};

/// Decodes any symbol that follows the coefficient at `zigzag_index`. Arguments and result are
/// passed by value, since variables with an address are not kept in registers.
HWY_NOINLINE FirstSymbol take_first_symbol(ScanBits bits, const FirstTable& table,
                                           std::uint32_t zigzag_index, int low_bit) {
  refill(bits);
  int length = 0;
  const int symbol = table.long_codes.find(bits.buffer, 1, length);
  if (symbol < 0) return {FirstSymbol::invalid, bits, 0, 0, 0};
  consume(bits, static_cast<std::uint32_t>(length));
  const auto high = static_cast<std::uint32_t>(symbol >> 4);
  const auto value_bits = static_cast<std::uint32_t>(symbol & 15);
  if (value_bits == 0 && high < 15) {
    const std::uint32_t run = (1U << high) + take_bits(bits, high);
    return {FirstSymbol::end_of_band, bits, 0, 0, run};
  }
  zigzag_index += high + 1;
  if (value_bits == 0) return {FirstSymbol::zeros, bits, zigzag_index, 0, 0};
  if (!table.allows(symbol & 15)) return {FirstSymbol::invalid, bits, 0, 0, 0};
  const std::int32_t value = take_value(bits, value_bits) * (1 << low_bit);
  return {FirstSymbol::coefficient, bits, zigzag_index, value, 0};
}

HWY_NOINLINE bool decode_first(BandScan& scan) {
  constexpr int max_taken = 5;
  static_assert(max_taken * FirstTable::index_bits <= 56);
  ScanBits bits = scan.bits;
  ScanBytes& bytes = *scan.bytes;
  const FirstTable& table = *scan.first_table;
  const std::uint32_t last = scan.last;
  const std::size_t end = scan.end;
  std::size_t block = scan.block;
  std::uint32_t run = scan.run;
  for (;;) {
    if (run >= end - block) {
      scan.run = run - static_cast<std::uint32_t>(end - block);
      scan.block = end;
      scan.bits = bits;
      return true;
    }
    block += run;
    if (!ensure(bytes, bits)) return false;
    std::int16_t* const values = scan.values + std::size_t{64} * scan.slots[block];
    std::uint64_t& mask = scan.masks[block * scan.masks_per_block + BlockMasks::nonzero];
    std::uint64_t nonzero = mask;
    std::uint32_t zigzag_index = scan.first - 1;
    run = 0;
    while (run == 0) {
      refill(bits);
      std::uint32_t entry = 0;
      int taken = 0;
      for (; taken < max_taken; ++taken) {
        entry = look_up(table, bits);
        const std::uint32_t next = zigzag_index + (entry >> 8 & 0xFF);
        if (next >= last) [[unlikely]]
          break;
        consume(bits, entry);
        zigzag_index = next;
        values[63 - zigzag_index] = static_cast<std::int16_t>(entry >> 16);
        nonzero |= first_bit >> zigzag_index;
      }
      if (taken == max_taken) continue;
      const std::uint32_t distance = entry >> 8 & 0xFF;
      if (distance == FirstTable::end_of_band) {
        consume(bits, entry);
        run = entry >> 16;
        break;
      }
      if (zigzag_index + distance == last) {
        consume(bits, entry);
        values[63 - last] = static_cast<std::int16_t>(entry >> 16);
        nonzero |= first_bit >> last;
        run = 1;
        break;
      }
      const FirstSymbol symbol = take_first_symbol(bits, table, zigzag_index, scan.low_bit);
      bits = symbol.rest;
      if (symbol.kind == FirstSymbol::invalid) return false;
      if (symbol.kind == FirstSymbol::end_of_band) {
        run = symbol.run;
        break;
      }
      zigzag_index = symbol.zigzag_index;
      if (zigzag_index > last) return false;
      if (symbol.kind == FirstSymbol::coefficient) {
        values[63 - zigzag_index] = static_cast<std::int16_t>(symbol.value);
        nonzero |= first_bit >> zigzag_index;
      }
      if (zigzag_index == last) run = 1;
    }
    mask = nonzero;
  }
}

bool refine(BandScan& scan) {
#if MILLRACE_JPEG_HAS_PDEP
  if (has_fast_pdep()) return refine_by<ZerosByPdep>(scan);
#endif
  return refine_by<ZerosByLoop>(scan);
}

HWY_NOINLINE bool decode_dc(DcScan& scan, int mcus) {
  ScanBits bits = scan.bits;
  // The coefficients, shifted by the low bit, must fit into 16 bits.
  const std::uint32_t lowest = 0x8000U >> scan.low_bit;
  const std::uint32_t count = 0x10000U >> scan.low_bit;
  for (; mcus > 0; --mcus) {
    if (!ensure(*scan.bytes, bits)) return false;
    for (int n = 0; n < scan.block_count; ++n) {
      DcScan::Block& block = scan.blocks[static_cast<std::size_t>(n)];
      refill(bits);
      std::int32_t difference = 0;
      if (!take_difference(bits, *block.table, difference)) return false;
      const std::uint32_t value = *block.predictor + static_cast<std::uint32_t>(difference);
      if (value + lowest >= count) return false;
      *block.predictor = value;
      *block.value = static_cast<std::int16_t>(value << scan.low_bit);
      block.value += block.step;
    }
  }
  scan.bits = bits;
  return true;
}

HWY_NOINLINE bool refine_dc(DcScan& scan, int mcus) {
  ScanBits bits = scan.bits;
  for (; mcus > 0; --mcus) {
    if (!ensure(*scan.bytes, bits)) return false;
    refill(bits);
    for (int n = 0; n < scan.block_count; ++n) {
      DcScan::Block& block = scan.blocks[static_cast<std::size_t>(n)];
      const auto bit = static_cast<std::int32_t>(take_bits(bits, 1) << scan.low_bit);
      *block.value = static_cast<std::int16_t>(*block.value | bit);
      block.value += block.step;
    }
  }
  scan.bits = bits;
  return true;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {

HWY_EXPORT(decode_first);
HWY_EXPORT(refine);
HWY_EXPORT(decode_dc);
HWY_EXPORT(refine_dc);

bool decode_first(BandScan& scan) { return HWY_DYNAMIC_DISPATCH(decode_first)(scan); }
bool refine(BandScan& scan) { return HWY_DYNAMIC_DISPATCH(refine)(scan); }
bool decode_dc(DcScan& scan, int mcus) { return HWY_DYNAMIC_DISPATCH(decode_dc)(scan, mcus); }
bool refine_dc(DcScan& scan, int mcus) { return HWY_DYNAMIC_DISPATCH(refine_dc)(scan, mcus); }

}  // namespace millrace::jpeg
#endif
