// SPDX-License-Identifier: Apache-2.0
//
// Groups of RGB pixels as vectors of 16-bit numbers, loaded from bytes and stored to bytes.
// Included once for each instruction set.
#if defined(MILLRACE_PIXELS_PIXELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_PIXELS_PIXELS_INL_H
#undef MILLRACE_PIXELS_PIXELS_INL_H
#else
#define MILLRACE_PIXELS_PIXELS_INL_H
#endif

#include <array>

#include "pixels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

struct Pixels16 {
  V16 red, green, blue;
};

/// Number of pixels of a group: as many as a vector has bytes.
inline constexpr std::size_t group_size = hn::MaxLanes(D8());
using Group = Two<Pixels16>;

/// Loads the planes of a group's bytes. The order of the pixels in a plane is private to
/// `load_planes` and `store_planes`.
HWY_INLINE Group load_planes(const std::uint8_t* planes) {
  const Two<V16> red = widened(hn::LoadU(D8(), planes));
  const Two<V16> green = widened(hn::LoadU(D8(), planes + group_size));
  const Two<V16> blue = widened(hn::LoadU(D8(), planes + 2 * group_size));
  return {{red.low, green.low, blue.low}, {red.high, green.high, blue.high}};
}

HWY_INLINE void store_planes(const Group& group, std::uint8_t* planes) {
  const auto& [low, high] = group;
  hn::StoreU(narrowed({low.red, high.red}), D8(), planes);
  hn::StoreU(narrowed({low.green, high.green}), D8(), planes + group_size);
  hn::StoreU(narrowed({low.blue, high.blue}), D8(), planes + 2 * group_size);
}

#if HWY_MAX_BYTES == 32

static_assert(hn::MaxLanes(D8()) == 32);

/// Returns the shuffle indices that collect a channel's 8 numbers from 16 of the 24 bytes of 8
/// pixels. These 16 bytes begin at byte `first`. The index 128 makes a zero: for numbers outside
/// these bytes, and for the higher byte of each 16-bit number.
constexpr std::array<std::uint8_t, 16> places_of(int channel, int first, bool taken_before) {
  std::array<std::uint8_t, 16> places{};
  for (int n = 0; n < 8; ++n) {
    const int at = 3 * n + channel;
    const bool before = at < 16;
    places[static_cast<std::size_t>(2 * n)] =
        before == taken_before ? static_cast<std::uint8_t>(at - first) : 128;
    places[static_cast<std::size_t>(2 * n + 1)] = 128;
  }
  return places;
}

/// Loads 16 pixels, with two thirds of the shuffles that planes of bytes would take.
HWY_INLINE Pixels16 load_half(const std::uint8_t* pixels) {
  static constexpr std::array places{places_of(0, 0, true),  places_of(1, 0, true),
                                     places_of(2, 0, true),  places_of(0, 8, false),
                                     places_of(1, 8, false), places_of(2, 8, false)};
  const hn::Half<D8> block;
  const V8 before = hn::Combine(D8(), hn::LoadU(block, pixels + 24), hn::LoadU(block, pixels));
  const V8 behind = hn::Combine(D8(), hn::LoadU(block, pixels + 32), hn::LoadU(block, pixels + 8));
  const auto channel = [&](std::size_t n) HWY_ATTR {
    const V8 in_before = hn::TableLookupBytesOr0(before, hn::LoadDup128(D8(), places[n].data()));
    const V8 in_behind =
        hn::TableLookupBytesOr0(behind, hn::LoadDup128(D8(), places[n + 3].data()));
    return hn::BitCast(D16(), hn::Or(in_before, in_behind));
  };
  return {channel(0), channel(1), channel(2)};
}

/// Stores 16 pixels. Does not clamp: the numbers must be 0 .. 255 already. Stores 4 bytes more
/// unless `last` is set.
HWY_INLINE void store_half(const Pixels16& half, std::uint8_t* pixels, bool last) {
  static constexpr std::uint8_t places[16] = {0,  1,  2,  4,  5,   6,   8,   9,
                                              10, 12, 13, 14, 128, 128, 128, 128};
  const V16 red_green = hn::Or(half.red, hn::ShiftLeft<8>(half.green));
  const auto four_each = [&](V16 with_zeros) HWY_ATTR {
    return hn::TableLookupBytesOr0(hn::BitCast(D8(), with_zeros), hn::LoadDup128(D8(), places));
  };
  const V8 even = four_each(hn::InterleaveLower(D16(), red_green, half.blue));
  const V8 odd = four_each(hn::InterleaveUpper(D16(), red_green, half.blue));
  const hn::Half<D8> block;
  hn::StoreU(hn::LowerHalf(block, even), block, pixels);
  hn::StoreU(hn::LowerHalf(block, odd), block, pixels + 12);
  hn::StoreU(hn::UpperHalf(block, even), block, pixels + 24);
  const auto end = hn::UpperHalf(block, odd);
  if (!last) return hn::StoreU(end, block, pixels + 36);
  const hn::Half<decltype(block)> eight;
  const hn::Half<decltype(eight)> four;
  hn::StoreU(hn::LowerHalf(eight, end), eight, pixels + 36);
  hn::StoreU(hn::LowerHalf(four, hn::UpperHalf(eight, end)), four, pixels + 44);
}

/// Whether `store_pixels` clamps numbers to 0 .. 255.
inline constexpr bool cut_when_stored = false;

HWY_INLINE Group load_pixels(const std::uint8_t* pixels) {
  return {load_half(pixels), load_half(pixels + 48)};
}

HWY_INLINE void store_pixels(const Group& group, std::uint8_t* pixels) {
  store_half(group.low, pixels, false);
  store_half(group.high, pixels + 48, true);
}

#else

inline constexpr bool cut_when_stored = true;

HWY_INLINE Group load_pixels(const std::uint8_t* pixels) {
  V8 red, green, blue;
  hn::LoadInterleaved3(D8(), pixels, red, green, blue);
  const Two<V16> reds = widened(red);
  const Two<V16> greens = widened(green);
  const Two<V16> blues = widened(blue);
  return {{reds.low, greens.low, blues.low}, {reds.high, greens.high, blues.high}};
}

HWY_INLINE void store_pixels(const Group& group, std::uint8_t* pixels) {
  const auto& [low, high] = group;
  hn::StoreInterleaved3(narrowed({low.red, high.red}), narrowed({low.green, high.green}),
                        narrowed({low.blue, high.blue}), D8(), pixels);
}

#endif
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
