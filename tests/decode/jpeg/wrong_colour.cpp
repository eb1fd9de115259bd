// SPDX-License-Identifier: Apache-2.0
//
// decode/'s colour.cpp in which the instruction set that the process chooses first gives wrong
// pixels. A linker takes these functions instead of the library's.
#include "jpeg/colour.h"

#define ycc_to_rgb right_ycc_to_rgb
#define grey_to_rgb right_grey_to_rgb
#include "jpeg/colour.cpp"
#undef ycc_to_rgb
#undef grey_to_rgb

namespace millrace::jpeg {
namespace {

bool is_wrong() {
  const std::size_t set = hwy::GetChosenTarget().GetIndex();
  static const std::size_t first = set;
  return set == first;
}

}  // namespace

void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::uint8_t* rgb, std::size_t width) {
  right_ycc_to_rgb(y, cb, cr, rgb, width);
  if (is_wrong()) rgb[width / 2] ^= 1;
}

void grey_to_rgb(const std::uint8_t* y, std::uint8_t* rgb, std::size_t width) {
  right_grey_to_rgb(y, rgb, width);
}

}  // namespace millrace::jpeg
