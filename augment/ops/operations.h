// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/image_operation.h"

namespace millrace {

// Each is defined in the file of its operation and makes it with its default parameters.
std::shared_ptr<ImageOperation> make_exif_transpose();
std::shared_ptr<ImageOperation> make_random_resized_crop();
std::shared_ptr<ImageOperation> make_resized_crop();
std::shared_ptr<ImageOperation> make_resize();
std::shared_ptr<ImageOperation> make_pad();
std::shared_ptr<ImageOperation> make_random_crop();
std::shared_ptr<ImageOperation> make_center_crop();
std::shared_ptr<ImageOperation> make_random_horizontal_flip();
std::shared_ptr<ImageOperation> make_random_vertical_flip();
std::shared_ptr<ImageOperation> make_random_affine();
std::shared_ptr<ImageOperation> make_random_rotation();
std::shared_ptr<ImageOperation> make_random_perspective();
std::shared_ptr<ImageOperation> make_random_erasing();

/// Every operation that JSON can name.
inline constexpr std::shared_ptr<ImageOperation> (*operations[])() = {
    make_exif_transpose,
    make_random_resized_crop,
    make_resized_crop,
    make_resize,
    make_pad,
    make_random_crop,
    make_center_crop,
    make_random_horizontal_flip,
    make_random_vertical_flip,
    make_random_affine,
    make_random_rotation,
    make_random_perspective,
    make_random_erasing,
};

}  // namespace millrace
