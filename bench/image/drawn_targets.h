// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/target.h>

#include <vector>

#include "image/made_image.h"

namespace millrace::cli {

/// A sample's image with its masks, boxes and keypoints drawn on it, in the order of the targets. A
/// mask's number has a colour, and 0 has none; boxes have that of the integer that belongs to each
/// ("of"), or of their own number if there is none.
MadeImage with_targets(const MadeSample& sample, const std::vector<Target>& targets);

}  // namespace millrace::cli
