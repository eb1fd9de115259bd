// SPDX-License-Identifier: Apache-2.0
//
// The list of a recipe's operations.
#pragma once

/// Expands to ROW(struct, source) for each operation: the struct of its parameters, and its source
/// in augment/ops/ without ".cpp". The source's file name is the operation's name in JSON. Messages
/// name operations in this order. CMake takes the sources from these rows.
#define MILLRACE_OPERATIONS(ROW)                               \
  ROW(ExifTranspose, "exif_transpose")                         \
  ROW(RandomResizedCrop, "random_resized_crop")                \
  ROW(ResizedCrop, "resized_crop")                             \
  ROW(Resize, "resize")                                        \
  ROW(Pad, "pad")                                              \
  ROW(RandomCrop, "random_crop")                               \
  ROW(CenterCrop, "center_crop")                               \
  ROW(FiveCrop, "five_crop")                                   \
  ROW(TenCrop, "ten_crop")                                     \
  ROW(RandomHorizontalFlip, "random_horizontal_flip")          \
  ROW(RandomVerticalFlip, "random_vertical_flip")              \
  ROW(RandomAffine, "warp/random_affine")                      \
  ROW(RandomRotation, "warp/random_rotation")                  \
  ROW(RandomPerspective, "warp/random_perspective")            \
  ROW(RandomErasing, "warp/random_erasing")                    \
  ROW(ColorJitter, "colour/color_jitter")                      \
  ROW(Grayscale, "colour/grayscale")                           \
  ROW(RandomGrayscale, "colour/random_grayscale")              \
  ROW(GaussianBlur, "colour/gaussian_blur")                    \
  ROW(RandomSolarize, "colour/random_solarize")                \
  ROW(RandomPosterize, "colour/random_posterize")              \
  ROW(RandomEqualize, "colour/random_equalize")                \
  ROW(RandomAutocontrast, "colour/random_autocontrast")        \
  ROW(RandomInvert, "colour/random_invert")                    \
  ROW(RandomAdjustSharpness, "colour/random_adjust_sharpness") \
  ROW(RandomApply, "policy/random_apply")                      \
  ROW(RandomChoice, "policy/random_choice")                    \
  ROW(RandAugment, "policy/rand_augment")                      \
  ROW(TrivialAugmentWide, "policy/trivial_augment_wide")       \
  ROW(AutoAugment, "policy/auto_augment")                      \
  ROW(AugMix, "policy/aug_mix")                                \
  ROW(ThreeAugment, "policy/three_augment")
