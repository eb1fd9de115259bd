// SPDX-License-Identifier: Apache-2.0
//
// Parameters, in torchvision's names, of operations that run other operations, and of policies that
// draw the operations for a sample. The structs are values: they may be copied, and read from any
// thread.
//
// The pixels equal those that torchvision makes from PIL images, to the bit; `AugMix` states an
// exception. `interpolation` is `nearest`, `bilinear` or `bicubic`, without antialiasing. Pixels
// from outside the image have the colour `fill`.
#pragma once

#include <millrace/operation.h>

#include <vector>

namespace MILLRACE_API millrace {

/// Runs all of `ops` in their order with probability `p`, otherwise none: torchvision's
/// `RandomApply`. `ops` has at least one operation. All must be operations on pixels, and none may
/// be a flip.
struct RandomApply {
  std::vector<Operation> ops{};
  double p = 0.5;
};

/// Runs one operation of `ops`, chosen at random: torchvision's `RandomChoice`. The rules for `ops`
/// are those of `RandomApply`.
struct RandomChoice {
  std::vector<Operation> ops{};
  /// A weight for each operation; empty = equal weights.
  std::vector<double> p{};
};

/// Runs `num_ops` operations, one after the other, all at the same magnitude: torchvision's
/// `RandAugment`. Each is chosen at random from 14: identity, shears, translations, rotation,
/// brightness, color, contrast, sharpness, posterize, solarize, autocontrast and equalize. Source:
/// Cubuk et al., "RandAugment: Practical automated data augmentation with a reduced search space",
/// 2019.
struct RandAugment {
  int num_ops = 2;
  /// Index of the magnitude, from 0 to `num_magnitude_bins` - 1.
  int magnitude = 9;
  /// 2 to 1000.
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// Runs one of the 14 operations of `RandAugment`, chosen at random, at a random magnitude from a
/// wider range: torchvision's `TrivialAugmentWide`. Source: Müller and Hutter, "TrivialAugment:
/// Tuning-free Yet State-of-the-Art Data Augmentation", 2021.
struct TrivialAugmentWide {
  /// 2 to 1000.
  int num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// The dataset on which a policy of `AutoAugment` was learned.
enum class AutoAugmentPolicy { imagenet, cifar10, svhn };

/// Runs one of the policy's 25 pairs of operations, chosen at random: torchvision's `AutoAugment`.
/// Each operation of the pair has a probability of its own. Source: Cubuk et al., "AutoAugment:
/// Learning Augmentation Strategies from Data", 2018.
struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::imagenet;
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// Mixes the image with `mixture_width` copies of it, each changed by a chain of operations:
/// torchvision's `AugMix`. The pixels of the chains' operations may differ by 1 or 2 levels from
/// torchvision's: `AugMix` there runs these operations on a tensor. Here they give the pixels that
/// torchvision's operations give on PIL images. Mixing equal inputs gives torchvision's pixels, to
/// the bit.
/// Source: Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and
/// Uncertainty", 2019.
struct AugMix {
  /// The first `severity` of 10 magnitudes may be drawn; 1 to 10.
  int severity = 3;
  /// 1 to 100.
  int mixture_width = 3;
  /// Operations in each chain, up to 100. -1 or 0: 1 to 3, drawn for each chain.
  int chain_depth = -1;
  /// Parameter of the Dirichlet distributions of the weights, 0.01 to 1000.
  double alpha = 1.0;
  /// Whether brightness, contrast, saturation and sharpness are among the operations.
  bool all_ops = true;
  Interpolation interpolation = Interpolation::bilinear;
  Colour fill{};
};

/// Makes the image grey, inverts all levels >= 128 (solarize), or blurs it by Pillow's
/// `GaussianBlur` with a radius of 0.1 to 2. Each of the three has the same probability. DeiT III
/// calls this 3-Augment.
/// Source: Touvron et al., "DeiT III: Revenge of the ViT", 2022.
struct ThreeAugment {};

}  // namespace millrace
