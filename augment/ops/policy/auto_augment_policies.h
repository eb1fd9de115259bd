// SPDX-License-Identifier: Apache-2.0
//
// The learned policies of `AutoAugment`. Source: torchvision's autoaugment.py, after Cubuk et al.,
// "AutoAugment: Learning Augmentation Strategies from Data", 2018.
#pragma once

#include <millrace/policies.h>

#include <array>
#include <span>

#include "ops/policy/augmentation_space.h"

namespace millrace {

/// An operation, the probability that it runs, and the number of its magnitude (of 10).
struct LikelyAugmentation {
  Augmentation what;
  double p;
  int bin = 0;
};
using AugmentationPair = std::array<LikelyAugmentation, 2>;

inline constexpr std::size_t augmentation_pairs = 25;
std::span<const AugmentationPair, augmentation_pairs> policy_of(AutoAugmentPolicy policy);

}  // namespace millrace
