// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h).
//
// Both passes multiply pairs of inputs. So coefficients are loaded in pairs of two rows, and in an
// order of columns by which the first pass's results are pairs for the second one. Between the
// passes only pairs are transposed.
#include "coefficients/samples.h"

#include <array>
#include <utility>

#include "coefficients/look_ups.h"
#include "jpeg/avx512.h"
#include "jpeg/idct.h"

// Disables targets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coefficients/samples.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "jpeg/idct-inl.h"

#ifndef MILLRACE_SAMPLES_TABLES
#define MILLRACE_SAMPLES_TABLES

namespace millrace::coefficients {
namespace {

/// Rows whose coefficients are interleaved to pairs, and the columns in the first and the last half
/// of eight pairs. With this order of columns, the results of the first pass in both halves are the
/// same pairs.
constexpr std::array<std::array<std::size_t, 2>, 4> row_pairs = {{{2, 6}, {0, 4}, {7, 1}, {3, 5}}};
constexpr std::array<std::size_t, 8> column_order = {2, 0, 7, 3, 6, 4, 1, 5};
/// The same if only the lowest 4 x 4 coefficients are nonzero: four pairs of each.
constexpr std::array<std::array<std::size_t, 2>, 2> corner_pairs = {{{0, 2}, {3, 1}}};
constexpr std::array<std::size_t, 4> corner_columns = {0, 2, 3, 1};

/// The coefficients of the pairs `pair`, and those of both pairs of the corner, by their places in
/// a block that is stored row by row.
constexpr std::array<std::size_t, look_up_bytes> places_of_pair(std::size_t pair) {
  std::array<std::size_t, look_up_bytes> places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[n] = row_pairs[pair][n % 2] * 8 + column_order[n / 2];
  return places;
}
constexpr std::array<std::size_t, look_up_bytes> corner_places = [] {
  std::array<std::size_t, look_up_bytes> places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[n] = corner_pairs[n / 8][n % 2] * 8 + corner_columns[n / 2 % 4];
  return places;
}();

constexpr std::array<LookUps<4>, 4> pair_look_ups = {
    look_ups_of<4>(places_of_pair(0)), look_ups_of<4>(places_of_pair(1)),
    look_ups_of<4>(places_of_pair(2)), look_ups_of<4>(places_of_pair(3))};
constexpr LookUps<2> corner_look_ups = look_ups_of<2>(corner_places);
/// For each coefficient: its place among the four pairs.
constexpr auto places_in_pairs = [] {
  std::array<std::uint8_t, block_values> places{};
  for (std::size_t pair = 0; pair < row_pairs.size(); ++pair)
    for (std::size_t n = 0; n < look_up_bytes; ++n)
      places[places_of_pair(pair)[n]] = static_cast<std::uint8_t>(pair * look_up_bytes + n);
  return places;
}();
/// Bit mask of the coefficients outside the lowest 4 x 4, as in `TileBytes::stored`.
constexpr std::uint64_t outside_corner = [] {
  std::uint64_t bits = 0;
  for (std::size_t n = 1; n < block_values; ++n)
    if (zigzag_places[n] / 8 > 3 || zigzag_places[n] % 8 > 3) bits |= std::uint64_t{1} << (n - 1);
  return bits;
}();

/// For each block: the shuffle that moves its number of 16 bits to the first of 8.
struct DcLookUps {
  alignas(64) std::uint8_t places[tile_blocks][look_up_bytes];
};
constexpr DcLookUps dc_look_ups = [] {
  DcLookUps look_ups{};
  for (std::size_t block = 0; block < tile_blocks; ++block)
    for (std::size_t n = 0; n < look_up_bytes; ++n)
      look_ups.places[block][n] = n < 2 ? static_cast<std::uint8_t>(2 * block + n) : no_byte;
  return look_ups;
}();

}  // namespace
}  // namespace millrace::coefficients

#endif

HWY_BEFORE_NAMESPACE();
namespace millrace::coefficients {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

bool transforms() { return false; }
void transform(const TileBytes&, std::size_t, std::size_t, const StepsOfBytes&, std::uint8_t*,
               std::size_t) {}

#else

namespace hn = hwy::HWY_NAMESPACE;
namespace idct = jpeg::idct;
using namespace jpeg::HWY_NAMESPACE;
using D8 = hn::Repartition<std::uint8_t, D16>;

constexpr std::size_t vector_blocks = hn::MaxLanes(D16()) / jpeg::block_side;
constexpr std::size_t vector_values = hn::MaxLanes(D16());

/// Loads the same 16 bytes of each block.
template <class D>
HWY_INLINE hn::Vec<D> load_part(D d, const TileBytes& tile, std::size_t block, std::size_t part) {
  if constexpr (hn::MaxLanes(d) == look_up_bytes) {
    return hn::Load(d, tile.values[block].data() + part * look_up_bytes);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t blocks = hn::MaxLanes(half) / look_up_bytes;
    return hn::Combine(d, load_part(half, tile, block + blocks, part),
                       load_part(half, tile, block, part));
  }
}

/// Looks up the bytes of pairs of coefficients, and multiplies them by their steps.
template <std::size_t parts>
HWY_INLINE Pairs load_pairs(const hn::Vec<D8> (&bytes)[parts],
                            const std::uint8_t (&places)[parts][look_up_bytes],
                            const std::int16_t* steps) {
  const D8 d8;
  auto pairs = hn::TableLookupBytesOr0(bytes[0], hn::LoadDup128(d8, places[0]));
  for (std::size_t n = 1; n < parts; ++n)
    pairs = hn::Or(pairs, hn::TableLookupBytesOr0(bytes[n], hn::LoadDup128(d8, places[n])));
  // (value x 2^8) x (step x 2^7) / 2^15, exactly.
  const auto times_steps = [&](hn::Vec<D8> values, const std::int16_t* of_values) HWY_ATTR {
    return hn::MulFixedPoint15(hn::BitCast(D16(), values), hn::LoadDup128(D16(), of_values));
  };
  return {times_steps(hn::InterleaveLower(d8, hn::Zero(d8), pairs), steps),
          times_steps(hn::InterleaveUpper(d8, hn::Zero(d8), pairs), steps + 8)};
}

/// Transposes the pairs of four rows: vector n gets the pair n of each row.
HWY_INLINE void transpose(const V16* rows, V16 (&pairs)[4]) {
  for (int n = 0; n < 4; ++n) pairs[n] = rows[n];
  interleave(D32(), pairs[0], pairs[1]);
  interleave(D32(), pairs[2], pairs[3]);
  interleave(D64(), pairs[0], pairs[2]);
  interleave(D64(), pairs[1], pairs[3]);
  std::swap(pairs[1], pairs[2]);
}

constexpr int scale = 1 << idct::scale_bits;

/// Added before a pass's shift: the half that rounds and, in the second pass, the samples' centre.
template <int shift>
HWY_INLINE V32 round() {
  constexpr int centre = shift == idct::second_shift ? sample_centre << shift : 0;
  return hn::Set(D32(), (1 << (shift - 1)) + centre);
}

/// Sums of a pass from the pairs (2, 6), (0, 4), (7, 1) and (3, 5).
template <int shift>
HWY_INLINE Outputs outputs_of_pairs(V16 of26, V16 of04, V16 of71, V16 of35) {
  return outputs_of(hn::Add(products<scale, scale>(of04), round<shift>()),
                    hn::Add(products<scale, -scale>(of04), round<shift>()), of26, of71, of35);
}

/// Sums of a pass from the pairs (0, 2) and (3, 1), if the other inputs are 0.
template <int shift>
HWY_INLINE Outputs outputs_of_corner(V16 of02, V16 of31) {
  using namespace idct;
  return {{hn::Add(products<scale, even3_by_2>(of02), round<shift>()),
           hn::Add(products<scale, even2_by_2>(of02), round<shift>()),
           hn::Add(products<scale, -even2_by_2>(of02), round<shift>()),
           hn::Add(products<scale, -even3_by_2>(of02), round<shift>())},
          {products<turn4_by_73, turn4_by_51 + odd3_by_1>(of31),
           products<turn3_by_73 + odd2_by_3, turn3_by_51>(of31),
           products<turn4_by_73 + odd1_by_3, turn4_by_51>(of31),
           products<turn3_by_73, turn3_by_51 + odd0_by_1>(of31)}};
}

/// Transforms blocks whose coefficients lie among the lowest 4 x 4. The vector `dc` has the DC
/// coefficients times their step, each in the first lane of its block.
HWY_INLINE void transform_corner(const TileBytes& tile, std::size_t block, V16 dc,
                                 const StepsOfBytes& steps, std::uint8_t* samples,
                                 std::size_t stride) {
  constexpr int first = idct::first_shift;
  const hn::Vec<D8> bytes[2] = {load_part(D8(), tile, block, 0), load_part(D8(), tile, block, 1)};
  const Pairs loaded = load_pairs(bytes, corner_look_ups.places, steps.corner.data());
  const Outputs sums = outputs_of_corner<first>(hn::Or(loaded.lower, dc), loaded.upper);
  const auto joined = [](V32 a, V32 b) HWY_ATTR {
    return hn::ReorderDemote2To(D16(), hn::ShiftRight<first>(a), hn::ShiftRight<first>(b));
  };
  // Each vector has the pairs (0, 2) and (3, 1) of two rows.
  V16 of02 = joined(hn::Add(sums.even[0], sums.odd[0]), hn::Add(sums.even[2], sums.odd[2]));
  V16 of13 = joined(hn::Add(sums.even[1], sums.odd[1]), hn::Add(sums.even[3], sums.odd[3]));
  V16 of46 = joined(hn::Sub(sums.even[3], sums.odd[3]), hn::Sub(sums.even[1], sums.odd[1]));
  V16 of57 = joined(hn::Sub(sums.even[2], sums.odd[2]), hn::Sub(sums.even[0], sums.odd[0]));
  interleave(D32(), of02, of13);  // rows 0 and 1; 2 and 3
  interleave(D32(), of46, of57);
  interleave(D64(), of02, of13);  // pairs (0, 2); (3, 1)
  interleave(D64(), of46, of57);
  constexpr int second = idct::second_shift;
  store_samples<0>(outputs_of_corner<second>(of02, of13), samples, stride);
  store_samples<0>(outputs_of_corner<second>(of46, of57), samples + 4 * stride, stride);
}

/// Puts coefficients of two bytes, times their steps, into the four pairs of vectors of
/// `transform_whole`.
HWY_NOINLINE void put_wide(const TileBytes& tile, std::size_t first, const StepsOfBytes& steps,
                           std::int16_t* pairs) {
  const std::uint8_t* value = tile.wide_values;
  for (std::size_t block = 0; block < first + vector_blocks; ++block)
    for (std::uint64_t left = tile.wide[block]; left != 0; left &= left - 1) {
      const std::size_t place = zigzag_places[static_cast<std::size_t>(std::countr_zero(left)) + 1];
      const std::size_t at = places_in_pairs[place];
      if (block >= first)
        pairs[at / 8 * vector_values + (block - first) * 8 + at % 8] =
            static_cast<std::int16_t>(load<std::int16_t>(value) * steps.steps[place]);
      value += sizeof(std::int16_t);
    }
}

/// Transforms any blocks. `has_wide`: there are coefficients of two bytes.
HWY_INLINE void transform_whole(const TileBytes& tile, std::size_t block, V16 dc, bool has_wide,
                                const StepsOfBytes& steps, std::uint8_t* samples,
                                std::size_t stride) {
  hn::Vec<D8> bytes[4];
  for (std::size_t part = 0; part < 4; ++part) bytes[part] = load_part(D8(), tile, block, part);
  const auto loaded = [&](std::size_t n) HWY_ATTR {
    return load_pairs(bytes, pair_look_ups[n].places, steps.pairs.data() + look_up_bytes * n);
  };
  // An implicit constructor would be compiled without the instruction set.
  Pairs in[4] = {loaded(0), loaded(1), loaded(2), loaded(3)};
  static_assert(places_in_pairs[0] == look_up_bytes + 2);
  in[1].lower =
      hn::Or(in[1].lower, hn::BitCast(D16(), hn::ShiftLeftBytes<4>(hn::BitCast(D8(), dc))));
  if (has_wide) {
    alignas(64) std::int16_t values[8 * vector_values];
    for (std::size_t n = 0; n < 4; ++n) {
      hn::Store(in[n].lower, D16(), values + 2 * n * vector_values);
      hn::Store(in[n].upper, D16(), values + (2 * n + 1) * vector_values);
    }
    put_wide(tile, block, steps, values);
    for (std::size_t n = 0; n < 4; ++n)
      in[n] = {hn::Load(D16(), values + 2 * n * vector_values),
               hn::Load(D16(), values + (2 * n + 1) * vector_values)};
  }
  constexpr int first = idct::first_shift, second = idct::second_shift;
  const Outputs left = outputs_of_pairs<first>(in[0].lower, in[1].lower, in[2].lower, in[3].lower);
  const Outputs right = outputs_of_pairs<first>(in[0].upper, in[1].upper, in[2].upper, in[3].upper);
  V16 rows[8];
  for (std::size_t n = 0; n < 4; ++n) {
    rows[n] = shifted_pairs<first>(hn::Add(left.even[n], left.odd[n]),
                                   hn::Add(right.even[n], right.odd[n]));
    rows[7 - n] = shifted_pairs<first>(hn::Sub(left.even[n], left.odd[n]),
                                       hn::Sub(right.even[n], right.odd[n]));
  }
  V16 upper[4], lower[4];
  transpose(rows, upper);
  transpose(rows + 4, lower);
  store_samples<0>(outputs_of_pairs<second>(upper[0], upper[1], upper[2], upper[3]), samples,
                   stride);
  store_samples<0>(outputs_of_pairs<second>(lower[0], lower[1], lower[2], lower[3]),
                   samples + 4 * stride, stride);
}

bool transforms() { return true; }

void transform(const TileBytes& tile, std::size_t first_group, std::size_t end_group,
               const StepsOfBytes& steps, std::uint8_t* samples, std::size_t stride) {
  const hn::FixedTag<std::int16_t, tile_blocks> each;
  alignas(16) std::int16_t dc[tile_blocks];
  hn::Store(hn::Mul(hn::LoadU(each, tile.dc.data()),
                    hn::Set(each, static_cast<std::int16_t>(steps.steps.front()))),
            each, dc);
  const auto all_dc = hn::BitCast(D8(), hn::LoadDup128(D16(), dc));
  for (std::size_t block = 4 * first_group; block < 4 * end_group;
       block += vector_blocks, samples += vector_blocks * jpeg::block_side) {
    std::uint64_t stored = 0;
    std::uint64_t wide = 0;
    for (std::size_t n = block; n < block + vector_blocks; ++n)
      stored |= tile.stored[n], wide |= tile.wide[n];
    const V16 first = hn::BitCast(
        D16(), hn::TableLookupBytesOr0(all_dc, hn::Load(D8(), dc_look_ups.places[block])));
    if (stored == 0)
      store_flat(first, samples, stride);
    else if ((stored & outside_corner) == 0 && wide == 0)
      transform_corner(tile, block, first, steps, samples, stride);
    else
      transform_whole(tile, block, first, wide != 0, steps, samples, stride);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::coefficients
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::coefficients {

HWY_EXPORT(transforms);
HWY_EXPORT(transform);

namespace {

void transform_with_vnni(const TileBytes& tile, std::size_t first, std::size_t end,
                         const StepsOfBytes& steps, std::uint8_t* samples, std::size_t stride) {
  transform_tile_vnni(tile, first, end, steps.for_vnni, samples, stride);
}

}  // namespace

void StepsOfBytes::set(const std::array<std::uint16_t, block_values>& all) {
  steps = all;
  const auto scaled = [&](std::size_t place) { return static_cast<std::int16_t>(all[place] << 7); };
  for (std::size_t n = 0; n < all.size(); ++n) pairs[places_in_pairs[n]] = scaled(n);
  for (std::size_t n = 0; n < corner.size(); ++n) corner[n] = scaled(corner_places[n]);
  if (jpeg::has_vbmi2()) for_vnni.set(all);
}

TileTransform tile_transform() {
  if (jpeg::has_vbmi2()) return {bytes_expansion(), transform_with_vnni};
  if (!HWY_DYNAMIC_DISPATCH(transforms)()) return {};
  return {bytes_expansion(), &HWY_DYNAMIC_DISPATCH(transform)};
}

}  // namespace millrace::coefficients
#endif
