// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/target.h>

#include <vector>

#include "command/image/made_image.h"

namespace millrace::cli {

/// Draws masks, boxes and keypoints on a sample's image, in the order of the targets. Each value of
/// a mask has a colour; 0 is transparent. A box has the colour of its integer target ("of"), or of
/// its own number if no such target exists.
MadeImage with_targets(const MadeSample& sample, const std::vector<Target>& targets);

}  // namespace millrace::cli
