// SPDX-License-Identifier: Apache-2.0
#include "ops/policy/auto_augment_policies.h"

namespace millrace {
namespace {

using What = Augmentation;

constexpr AugmentationPair imagenet[] = {
    {{{What::posterize, 0.4, 8}, {What::rotate, 0.6, 9}}},
    {{{What::solarize, 0.6, 5}, {What::auto_contrast, 0.6}}},
    {{{What::equalize, 0.8}, {What::equalize, 0.6}}},
    {{{What::posterize, 0.6, 7}, {What::posterize, 0.6, 6}}},
    {{{What::equalize, 0.4}, {What::solarize, 0.2, 4}}},
    {{{What::equalize, 0.4}, {What::rotate, 0.8, 8}}},
    {{{What::solarize, 0.6, 3}, {What::equalize, 0.6}}},
    {{{What::posterize, 0.8, 5}, {What::equalize, 1}}},
    {{{What::rotate, 0.2, 3}, {What::solarize, 0.6, 8}}},
    {{{What::equalize, 0.6}, {What::posterize, 0.4, 6}}},
    {{{What::rotate, 0.8, 8}, {What::color, 0.4, 0}}},
    {{{What::rotate, 0.4, 9}, {What::equalize, 0.6}}},
    {{{What::equalize, 0}, {What::equalize, 0.8}}},
    {{{What::invert, 0.6}, {What::equalize, 1}}},
    {{{What::color, 0.6, 4}, {What::contrast, 1, 8}}},
    {{{What::rotate, 0.8, 8}, {What::color, 1, 2}}},
    {{{What::color, 0.8, 8}, {What::solarize, 0.8, 7}}},
    {{{What::sharpness, 0.4, 7}, {What::invert, 0.6}}},
    {{{What::shear_x, 0.6, 5}, {What::equalize, 1}}},
    {{{What::color, 0.4, 0}, {What::equalize, 0.6}}},
    {{{What::equalize, 0.4}, {What::solarize, 0.2, 4}}},
    {{{What::solarize, 0.6, 5}, {What::auto_contrast, 0.6}}},
    {{{What::invert, 0.6}, {What::equalize, 1}}},
    {{{What::color, 0.6, 4}, {What::contrast, 1, 8}}},
    {{{What::equalize, 0.8}, {What::equalize, 0.6}}},
};

constexpr AugmentationPair cifar10[] = {
    {{{What::invert, 0.1}, {What::contrast, 0.2, 6}}},
    {{{What::rotate, 0.7, 2}, {What::translate_x, 0.3, 9}}},
    {{{What::sharpness, 0.8, 1}, {What::sharpness, 0.9, 3}}},
    {{{What::shear_y, 0.5, 8}, {What::translate_y, 0.7, 9}}},
    {{{What::auto_contrast, 0.5}, {What::equalize, 0.9}}},
    {{{What::shear_y, 0.2, 7}, {What::posterize, 0.3, 7}}},
    {{{What::color, 0.4, 3}, {What::brightness, 0.6, 7}}},
    {{{What::sharpness, 0.3, 9}, {What::brightness, 0.7, 9}}},
    {{{What::equalize, 0.6}, {What::equalize, 0.5}}},
    {{{What::contrast, 0.6, 7}, {What::sharpness, 0.6, 5}}},
    {{{What::color, 0.7, 7}, {What::translate_x, 0.5, 8}}},
    {{{What::equalize, 0.3}, {What::auto_contrast, 0.4}}},
    {{{What::translate_y, 0.4, 3}, {What::sharpness, 0.2, 6}}},
    {{{What::brightness, 0.9, 6}, {What::color, 0.2, 8}}},
    {{{What::solarize, 0.5, 2}, {What::invert, 0}}},
    {{{What::equalize, 0.2}, {What::auto_contrast, 0.6}}},
    {{{What::equalize, 0.2}, {What::equalize, 0.6}}},
    {{{What::color, 0.9, 9}, {What::equalize, 0.6}}},
    {{{What::auto_contrast, 0.8}, {What::solarize, 0.2, 8}}},
    {{{What::brightness, 0.1, 3}, {What::color, 0.7, 0}}},
    {{{What::solarize, 0.4, 5}, {What::auto_contrast, 0.9}}},
    {{{What::translate_y, 0.9, 9}, {What::translate_y, 0.7, 9}}},
    {{{What::auto_contrast, 0.9}, {What::solarize, 0.8, 3}}},
    {{{What::equalize, 0.8}, {What::invert, 0.1}}},
    {{{What::translate_y, 0.7, 9}, {What::auto_contrast, 0.9}}},
};

constexpr AugmentationPair svhn[] = {
    {{{What::shear_x, 0.9, 4}, {What::invert, 0.2}}},
    {{{What::shear_y, 0.9, 8}, {What::invert, 0.7}}},
    {{{What::equalize, 0.6}, {What::solarize, 0.6, 6}}},
    {{{What::invert, 0.9}, {What::equalize, 0.6}}},
    {{{What::equalize, 0.6}, {What::rotate, 0.9, 3}}},
    {{{What::shear_x, 0.9, 4}, {What::auto_contrast, 0.8}}},
    {{{What::shear_y, 0.9, 8}, {What::invert, 0.4}}},
    {{{What::shear_y, 0.9, 5}, {What::solarize, 0.2, 6}}},
    {{{What::invert, 0.9}, {What::auto_contrast, 0.8}}},
    {{{What::equalize, 0.6}, {What::rotate, 0.9, 3}}},
    {{{What::shear_x, 0.9, 4}, {What::solarize, 0.3, 3}}},
    {{{What::shear_y, 0.8, 8}, {What::invert, 0.7}}},
    {{{What::equalize, 0.9}, {What::translate_y, 0.6, 6}}},
    {{{What::invert, 0.9}, {What::equalize, 0.6}}},
    {{{What::contrast, 0.3, 3}, {What::rotate, 0.8, 4}}},
    {{{What::invert, 0.8}, {What::translate_y, 0, 2}}},
    {{{What::shear_y, 0.7, 6}, {What::solarize, 0.4, 8}}},
    {{{What::invert, 0.6}, {What::rotate, 0.8, 4}}},
    {{{What::shear_y, 0.3, 7}, {What::translate_x, 0.9, 3}}},
    {{{What::shear_x, 0.1, 6}, {What::invert, 0.6}}},
    {{{What::solarize, 0.7, 2}, {What::translate_y, 0.6, 7}}},
    {{{What::shear_y, 0.8, 4}, {What::invert, 0.8}}},
    {{{What::shear_x, 0.7, 9}, {What::translate_y, 0.8, 3}}},
    {{{What::shear_y, 0.8, 5}, {What::auto_contrast, 0.7}}},
    {{{What::shear_x, 0.7, 2}, {What::invert, 0.1}}},
};

}  // namespace

std::span<const AugmentationPair, augmentation_pairs> policy_of(AutoAugmentPolicy policy) {
  switch (policy) {
    case AutoAugmentPolicy::cifar10:
      return cifar10;
    case AutoAugmentPolicy::svhn:
      return svhn;
    default:
      return imagenet;
  }
}

}  // namespace millrace
