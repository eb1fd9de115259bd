// SPDX-License-Identifier: Apache-2.0
//
// Pillow's HSV in integers. Included once for each instruction set.
//
// Pillow truncates or rounds floats. The results equal the exact fractions, truncated or rounded.
// Exceptions are some hues whose exact value is an integer. This was checked for all colours on
// each instruction set; a test checks a fifth of them.
#if defined(MILLRACE_PIXELS_HUE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_PIXELS_HUE_INL_H
#undef MILLRACE_PIXELS_HUE_INL_H
#else
#define MILLRACE_PIXELS_HUE_INL_H
#endif

#include "pixels/pixels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

/// The exceptions: 8-bit hues whose exact value is an integer, but whose float32 value is less.
/// They are truncated to the integer below. Bit h % 8 of byte h / 8 is set for such a hue h.
inline constexpr std::uint8_t hues_truncated[2][16] = {
    {0xFE, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x11, 0x11, 0x01, 0x00,
     0x00},
    {0xAA, 0xAA, 0x2A, 0x22, 0x22, 0x22, 0x23, 0x23, 0x22, 0x22, 0x02, 0x00, 0x00, 0x00, 0x00,
     0x00}};

/// Returns all bits set where bit `hue` % 8 of byte `hue` / 8 is set.
HWY_INLINE V16 is_truncated(V16 hue) {
  static constexpr std::uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                            1, 2, 4, 8, 16, 32, 64, 128};
  const V16 byte = hn::ShiftRight<3>(hue);
  const V8 low = hn::TableLookupBytes(hn::LoadDup128(D8(), hues_truncated[0]),
                                      hn::BitCast(D8(), hn::And(byte, hn::Set(D16(), 15))));
  const V8 high = hn::TableLookupBytes(hn::LoadDup128(D8(), hues_truncated[1]),
                                       hn::BitCast(D8(), hn::And(byte, hn::Set(D16(), 15))));
  const V16 mask =
      hn::BitCast(D16(), hn::TableLookupBytes(hn::LoadDup128(D8(), bits),
                                              hn::BitCast(D8(), hn::And(hue, hn::Set(D16(), 7)))));
  const V16 of_hue = hn::IfThenElse(hn::Gt(byte, hn::Set(D16(), 15)), hn::BitCast(D16(), high),
                                    hn::BitCast(D16(), low));
  const V16 bit = hn::And(hn::And(of_hue, mask), hn::Set(D16(), 255));
  return hn::VecFromMask(D16(), hn::Gt(bit, hn::Zero(D16())));
}

/// Returns 1 / `number` for numbers of 1 to 255, with a relative error of less than 2^-21. Avoids
/// division, which is slow on x86.
HWY_INLINE VF reciprocal(VF number) {
#if HWY_ARCH_X86
  const VF about = hn::ApproximateReciprocal(number);  // error below 2^-11, squared by the next
                                                       // step
  return hn::Mul(about, hn::Sub(hn::Set(DF(), 2), hn::Mul(number, about)));
#else
  return hn::Div(hn::Set(DF(), 1), number);
#endif
}

/// Returns `from` times `factor` divided by `by`, for integers `from` and `by`, rounded down. The
/// factor is first made a little too large. So results that are integers stay the same. The others
/// do not reach the next integer if they lie at least 2^-17 of their value below it.
HWY_INLINE VF divided(VF from, float factor, VF by) {
  const VF above = hn::Set(DF(), factor * (1 + 0x1p-19F));
  return hn::Mul(hn::Mul(from, above), reciprocal(hn::Max(by, hn::Set(DF(), 1))));
}

HWY_INLINE V16 divided(const Two<VF>& from, float factor, const Two<VF>& by) {
  return from_floats({divided(from.low, factor, by.low), divided(from.high, factor, by.high)});
}

/// Returns value * share / 65025, rounded, for a value of 8 bits and an unsigned share of 0 to
/// 65025.
HWY_INLINE V16 rounded_share(V16 value, V16 share) {
  const DU16 du;
  const auto v = hn::BitCast(du, value);
  const auto s = hn::BitCast(du, share);
  // In units of 1/65536 the share is larger by 511 / 65025 of itself. This approximation is at most
  // 1.02 too low, so the result is at most one too low.
  const auto longer = hn::Add(s, hn::MulHigh(s, hn::Set(du, 515)));
  const auto about = hn::Add(hn::MulHigh(v, longer), hn::ShiftRight<15>(hn::Mul(v, longer)));
  // If it is one too low, the remainder is 65025 or a little more. Modulo 2^16, 65025 times the
  // result is -511 times it.
  const auto left =
      hn::Add(hn::Add(hn::Mul(v, s), hn::Set(du, 32512)), hn::Mul(about, hn::Set(du, 511)));
  const auto too_little = hn::VecFromMask(du, hn::Gt(left, hn::Set(du, 65024)));
  return hn::BitCast(D16(), hn::Sub(about, too_little));
}

HWY_INLINE Pixels16 hue_shifted(const Pixels16& pixels, V16 shift) {
  const D16 d;
  const auto& [red, green, blue] = pixels;
  const V16 most = hn::Max(red, hn::Max(green, blue));
  const V16 range = hn::Sub(most, hn::Min(red, hn::Min(green, blue)));
  // To HSV: the hue in sixths of the circle, times the range.
  const V16 two = hn::Add(range, range);
  const V16 of_red = hn::Sub(green, blue);
  const V16 at_red =
      hn::Add(of_red, hn::And(hn::BroadcastSignBit(of_red), hn::Add(two, hn::Add(two, two))));
  const V16 at_green = hn::Add(two, hn::Sub(blue, red));
  const V16 at_blue = hn::Add(hn::Add(two, two), hn::Sub(red, green));
  const V16 sixths = hn::IfThenElse(hn::Eq(red, most), at_red,
                                    hn::IfThenElse(hn::Eq(green, most), at_green, at_blue));
  const Two<VF> range_f = to_floats(range);
  // Sixths times 255, divided by 6 times the range. For an integer hue the product is compared
  // modulo 2^16.
  V16 hue = divided(to_floats(sixths), 42.5F, range_f);
  const auto exact = hn::Eq(hn::Mul(hue, two), hn::Mul(sixths, hn::Set(d, 85)));
  hue = hn::Add(hue, hn::And(hn::VecFromMask(d, exact), is_truncated(hue)));
  const V16 saturation = divided(range_f, 255, to_floats(most));

  hue = hn::And(hn::Add(hue, shift), hn::Set(d, 255));

  // To RGB: `sector` is the number of whole sixths, `part` the rest in units of 1/255 of a sixth.
  const V16 six = hn::Add(hn::Add(hue, hue), hn::ShiftLeft<2>(hue));
  const DU16 du;
  const V16 sector =
      hn::BitCast(d, hn::MulHigh(hn::BitCast(du, hn::Add(six, hn::Set(d, 1))), hn::Set(du, 257)));
  const V16 part = hn::Sub(six, hn::Sub(hn::ShiftLeft<8>(sector), sector));
  const auto odd = hn::Eq(hn::And(sector, hn::Set(d, 1)), hn::Set(d, 1));
  const V16 weight = hn::IfThenElse(odd, part, hn::Sub(hn::Set(d, 255), part));
  // Both are unsigned numbers of 16 bits.
  const V16 share =
      hn::Sub(hn::Set(d, static_cast<std::int16_t>(65025 - 65536)), hn::Mul(saturation, weight));
  const V16 between = rounded_share(most, share);
  const V16 product = hn::Add(hn::Mul(most, hn::Sub(hn::Set(d, 255), saturation)), hn::Set(d, 127));
  const V16 least =
      hn::BitCast(d, hn::ShiftRight<7>(hn::MulHigh(hn::BitCast(du, product), hn::Set(du, 0x8081))));

  // 255 where the channel is the maximum (`most`) or lies between (`between`), for sectors 0 to 6.
  const V8 places = hn::BitCast(D8(), hn::Or(sector, hn::ShiftLeft<8>(sector)));
  const auto is = [&](const std::uint8_t(&table)[16]) HWY_ATTR {
    return hn::BitCast(d, hn::TableLookupBytes(hn::LoadDup128(D8(), table), places));
  };
  static constexpr std::uint8_t red_most[16] = {255, 0, 0, 0, 0, 255, 255};
  static constexpr std::uint8_t red_between[16] = {0, 255, 0, 0, 255, 0, 0};
  static constexpr std::uint8_t green_most[16] = {0, 255, 255, 0, 0, 0, 0};
  static constexpr std::uint8_t green_between[16] = {255, 0, 0, 255, 0, 0, 255};
  static constexpr std::uint8_t blue_most[16] = {0, 0, 0, 255, 255, 0, 0};
  static constexpr std::uint8_t blue_between[16] = {0, 0, 255, 0, 0, 255, 0};
  return {
      hn::IfVecThenElse(is(red_most), most, hn::IfVecThenElse(is(red_between), between, least)),
      hn::IfVecThenElse(is(green_most), most, hn::IfVecThenElse(is(green_between), between, least)),
      hn::IfVecThenElse(is(blue_most), most, hn::IfVecThenElse(is(blue_between), between, least))};
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
