// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h).
#include <millrace/detail/resample.h>

#include <algorithm>
#include <cstring>

// Disables instruction sets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "resample/mirror.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Exchanges left and right of a row of 8-bit RGB.
void mirror_row(const std::uint8_t* from, std::size_t width, std::uint8_t* to) {
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t block = 16;
  const hn::FixedTag<std::uint8_t, block> d;
  alignas(16) static constexpr std::uint8_t backwards[block] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                                7,  6,  5,  4,  3,  2,  1, 0};
  if (width >= block) {
    const auto order = hn::Load(d, backwards);
    for (std::size_t x = 0; x < width; x += block) {
      const std::size_t first = std::min(x, width - block);  // the last block may overlap
      hn::Vec<decltype(d)> red;
      hn::Vec<decltype(d)> green;
      hn::Vec<decltype(d)> blue;
      hn::LoadInterleaved3(d, from + 3 * first, red, green, blue);
      hn::StoreInterleaved3(hn::TableLookupBytes(red, order), hn::TableLookupBytes(green, order),
                            hn::TableLookupBytes(blue, order), d, to + 3 * (width - block - first));
    }
    return;
  }
#endif
  for (std::size_t x = 0; x < width; ++x) std::memcpy(to + 3 * (width - 1 - x), from + 3 * x, 3);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(mirror_row);

}  // namespace

void mirror_rows(const std::uint8_t* from, Size size, std::uint8_t* to) {
  const auto mirror = HWY_DYNAMIC_DISPATCH(mirror_row);
  const auto width = static_cast<std::size_t>(size.width);
  for (int row = 0; row < size.height; ++row, from += 3 * width, to += 3 * width)
    mirror(from, width, to);
}

}  // namespace millrace
#endif
