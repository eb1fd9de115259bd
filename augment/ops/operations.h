// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/image_operation.h"

namespace millrace {

// Each of these is defined in its operation's file and makes the operation with its default
// parameters.
std::shared_ptr<ImageOperation> make_exif_transpose();
std::shared_ptr<ImageOperation> make_random_resized_crop();
std::shared_ptr<ImageOperation> make_resized_crop();
std::shared_ptr<ImageOperation> make_resize();
std::shared_ptr<ImageOperation> make_pad();
std::shared_ptr<ImageOperation> make_random_crop();
std::shared_ptr<ImageOperation> make_center_crop();
std::shared_ptr<ImageOperation> make_five_crop();
std::shared_ptr<ImageOperation> make_ten_crop();
std::shared_ptr<ImageOperation> make_random_horizontal_flip();
std::shared_ptr<ImageOperation> make_random_vertical_flip();
std::shared_ptr<ImageOperation> make_random_affine();
std::shared_ptr<ImageOperation> make_random_rotation();
std::shared_ptr<ImageOperation> make_random_perspective();
std::shared_ptr<ImageOperation> make_random_erasing();
std::shared_ptr<ImageOperation> make_color_jitter();
std::shared_ptr<ImageOperation> make_grayscale();
std::shared_ptr<ImageOperation> make_random_grayscale();
std::shared_ptr<ImageOperation> make_gaussian_blur();
std::shared_ptr<ImageOperation> make_random_solarize();
std::shared_ptr<ImageOperation> make_random_posterize();
std::shared_ptr<ImageOperation> make_random_equalize();
std::shared_ptr<ImageOperation> make_random_autocontrast();
std::shared_ptr<ImageOperation> make_random_invert();
std::shared_ptr<ImageOperation> make_random_adjust_sharpness();
std::shared_ptr<ImageOperation> make_random_apply();
std::shared_ptr<ImageOperation> make_random_choice();
std::shared_ptr<ImageOperation> make_rand_augment();
std::shared_ptr<ImageOperation> make_trivial_augment_wide();
std::shared_ptr<ImageOperation> make_auto_augment();
std::shared_ptr<ImageOperation> make_aug_mix();
std::shared_ptr<ImageOperation> make_three_augment();

/// Every operation that JSON can name.
inline constexpr std::shared_ptr<ImageOperation> (*operations[])() = {
    make_exif_transpose,
    make_random_resized_crop,
    make_resized_crop,
    make_resize,
    make_pad,
    make_random_crop,
    make_center_crop,
    make_five_crop,
    make_ten_crop,
    make_random_horizontal_flip,
    make_random_vertical_flip,
    make_random_affine,
    make_random_rotation,
    make_random_perspective,
    make_random_erasing,
    make_color_jitter,
    make_grayscale,
    make_random_grayscale,
    make_gaussian_blur,
    make_random_solarize,
    make_random_posterize,
    make_random_equalize,
    make_random_autocontrast,
    make_random_invert,
    make_random_adjust_sharpness,
    make_random_apply,
    make_random_choice,
    make_rand_augment,
    make_trivial_augment_wide,
    make_auto_augment,
    make_aug_mix,
    make_three_augment,
};

}  // namespace millrace
