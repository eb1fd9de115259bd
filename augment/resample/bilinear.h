// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

namespace millrace {

/// Weighs as Pillow's precompute_coeffs does, by its operations in their order, many pixels at a
/// time. `scale` is the source's pixels per pixel.
void weigh_bilinearly(const ResampleAxis::Wanted& wanted, double scale, BilinearWeights& made);

}  // namespace millrace
