// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

namespace millrace {

/// Computes the weights as Pillow's precompute_coeffs does, with the same operations in the same
/// order, for many pixels at a time. `scale` is the number of source pixels per pixel.
void weigh_bilinearly(const ResampleAxis::Wanted& wanted, double scale, BilinearWeights& made);

}  // namespace millrace
