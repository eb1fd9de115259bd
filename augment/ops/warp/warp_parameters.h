// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "ops/image_operation.h"
#include "pixels/warp.h"

namespace millrace {

/// The filters of operations that warp, by the names of an operation whose default is the first.
/// Any other is refused, since there is no name for it.
inline void describe_warp_interpolation(Parameters& parameters, Interpolation& value,
                                        Interpolation standard) {
  std::array<Interpolation, 3> filters{Interpolation::nearest, Interpolation::bilinear,
                                       Interpolation::bicubic};
  std::array<const char*, 3> names{"nearest", "bilinear", "bicubic"};
  if (standard == Interpolation::bilinear) {
    std::swap(filters[0], filters[1]);
    std::swap(names[0], names[1]);
  }
  const auto before = static_cast<std::size_t>(std::ranges::find(filters, value) - filters.begin());
  std::size_t place = before;
  parameters.choice("interpolation", place, names);
  if (place != before) value = filters[place];
}

/// Values of torchvision's parameters that are the same here.
inline constexpr const char* only_null[] = {"null"};
inline constexpr const char* only_false[] = {"false"};

/// Degrees that a range may have.
inline constexpr Range any_degrees{-360, 360};

/// Replaces the image by what `make(copy)` makes of a copy of it.
template <typename Make>
void remake(SampleImage& image, Make make) {
  const Scratch::Borrowed copy = image.scratch.borrow(image.bytes());
  std::copy_n(image.pixels, image.bytes(), copy.data());
  make(copy.data());
}

}  // namespace millrace
