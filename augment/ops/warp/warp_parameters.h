// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "ops/image_operation.h"
#include "pixels/warp.h"

namespace millrace {

/// Describes the filter of an operation that warps. The operation's default, `standard`, is the
/// first name. Other filters have no name and are refused.
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

/// The JSON values of torchvision's parameters that have no effect here.
inline constexpr const char* only_null[] = {"null"};
inline constexpr const char* only_false[] = {"false"};

/// The limits of a range of degrees.
inline constexpr Range any_degrees{-360, 360};

/// Returns the scratch of `remake`.
inline ScratchSizes remake_scratch(Size size) { return {rgb_bytes(size)}; }

/// Replaces the image by the result of `make(copy)`, where `copy` is a copy of it.
template <typename Make>
void remake(SampleImage& image, Make make) {
  const Scratch::Borrowed copy = image.scratch.borrow(image.bytes());
  std::copy_n(image.pixels, image.bytes(), copy.data());
  make(copy.data());
}

}  // namespace millrace
