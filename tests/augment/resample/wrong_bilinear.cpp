// SPDX-License-Identifier: Apache-2.0
//
// augment/'s bilinear.cpp in which the instruction set that the process chooses first gives wrong
// weights. A linker takes this function instead of the library's.
#include "resample/bilinear.h"

#define weigh_bilinearly weigh_rightly
#include "resample/bilinear.cpp"
#undef weigh_bilinearly

namespace millrace {

void weigh_bilinearly(const ResampleAxis::Wanted& wanted, double scale, BilinearWeights& made) {
  weigh_rightly(wanted, scale, made);
  const std::size_t set = hwy::GetChosenTarget().GetIndex();
  static const std::size_t first = set;
  if (set == first) made.weights[0] /= 2;
}

}  // namespace millrace
