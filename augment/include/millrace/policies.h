// SPDX-License-Identifier: Apache-2.0
//
// Operations that run others, and the policies that draw what is done to a sample: their
// parameters, in torchvision's names. These are values: they may be copied, and read from any
// thread.
//
// What is done has the pixels that torchvision makes of PIL images, to the bit. `interpolation` is
// `nearest`, `bilinear` or `bicubic`, none of them antialiased, and what comes from outside the
// image has the colour `fill`.
#pragma once

#include <millrace/operation.h>

#include <vector>

namespace MILLRACE_API millrace {

/// All of `ops` in their order with probability `p`, else none: torchvision's `RandomApply`. They
/// are operations on pixels, at least one, and no flips.
struct RandomApply {
  std::vector<Operation> ops{};
  double p = 0.5;
};

/// One of `ops`, which are as above: torchvision's `RandomChoice`.
struct RandomChoice {
  std::vector<Operation> ops{};
  /// A weight for each; empty = each is as likely as the others.
  std::vector<double> p{};
};

/// `num_ops` of 14 operations, one after the other, all at the same magnitude: torchvision's
/// `RandAugment`. Source: Cubuk et al., "RandAugment: Practical automated data augmentation with a
/// reduced search space", 2019.
struct RandAugment {
  int num_ops = 2;
  /// The number of one of the magnitudes, from 0.
  int magnitude = 9;
  /// 2 to 1000.
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// One of 14 operations at one of the magnitudes: torchvision's `TrivialAugmentWide`. Source:
/// Müller and Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", 2021.
struct TrivialAugmentWide {
  /// 2 to 1000.
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// The data set for which a policy of `AutoAugment` was learned.
enum class AutoAugmentPolicy { imagenet, cifar10, svhn };

/// One of 25 pairs of operations, each of which runs with a probability of its own: torchvision's
/// `AutoAugment`. Source: Cubuk et al., "AutoAugment: Learning Augmentation Strategies from Data",
/// 2018.
struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::imagenet;
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// A mixture of the image and of `mixture_width` chains of operations on it: torchvision's
/// `AugMix`. Here the operations in the chains are those on PIL images, where torchvision turns
/// such an image into a tensor first, whose operations differ by a level or two; the mixture is
/// torchvision's to the bit. Source: Hendrycks et al., "AugMix: A Simple Data Processing Method to
/// Improve Robustness and Uncertainty", 2019.
struct AugMix {
  /// How many of the 10 magnitudes may be drawn, 1 to 10.
  int severity = 3;
  /// 1 to 100.
  int mixture_width = 3;
  /// How many operations each chain has, up to 100; -1 draws 1 to 3 for each.
  int chain_depth = -1;
  /// Of the Dirichlet distributions of the weights, 0.01 to 1000.
  double alpha = 1.0;
  /// Whether brightness, contrast, saturation and sharpness are among the operations.
  bool all_ops = true;
  Interpolation interpolation = Interpolation::bilinear;
  Colour fill{};
};

/// Grey, solarized from the level 128 on, or blurred by Pillow's `GaussianBlur` of a radius of 0.1
/// to 2, each as likely as the others: what DeiT III calls 3-Augment. Source: Touvron et al., "DeiT
/// III: Revenge of the ViT", 2022.
struct ThreeAugment {};

}  // namespace millrace
