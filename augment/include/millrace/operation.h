// SPDX-License-Identifier: Apache-2.0
//
// The operations of a recipe and their parameters, in torchvision's names. These are values: they
// may be copied, and read from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/detail/operation_list.h>
#include <millrace/geometry.h>

#include <memory>
#include <string>

namespace MILLRACE_API millrace {

/// Filter of a resize. The filters are Pillow's. All except `nearest` antialias where the image
/// shrinks.
enum class Interpolation { bilinear, bicubic, box, hamming, lanczos, nearest };

/// Version of Pillow to follow: a resized image has exactly that version's pixels. The versions
/// differ in the order of the two passes. Versions before 13 always resize horizontally first.
/// Version 13 and later resize vertically first if the height shrinks by more than twice as many
/// pixels as the width; if the width grows, any smaller height is enough. The result of the first
/// pass has 8 bits, so some pixels differ by a level.
enum class Like {
  pillow_13,  ///< 13.0 and later
  pillow_12,  ///< every version before 13.0
};

/// An 8-bit colour.
struct Colour {
  int red = 0;
  int green = 0;
  int blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

/// The resolution at which an image is decoded.
enum class Resolution {
  exact,    ///< full resolution: the pixels of Pillow, which decodes the whole image and resizes it
  reduced,  ///< the lowest of 1/2, 1/4, 1/8 at which the part to resize is not smaller than its new
            ///< size; else exact
};

/// The place where images are decoded, cropped and resized.
enum class DecodeOn {
  worker,
  device,  ///< by the device, with the same pixels; `Recipe::decode_on` states for which images
};

/// Resizes a random box of the image to the output: torchvision's `RandomResizedCrop`.
struct RandomResizedCrop {
  /// Area of the box, as a share of the image's area.
  Range scale{0.08, 1.0};
  /// Width / height of the box.
  Range ratio{3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::bilinear;
};

/// Resizes the shorter side to `size` and the longer one in proportion: torchvision's
/// `Resize(int)`.
struct Resize {
  int size = 256;
  Interpolation interpolation = Interpolation::bilinear;
  /// If not {0, 0}, the image is resized to this size instead, and its proportions may change:
  /// torchvision's `Resize((height, width))`. In JSON it is "size": [width, height].
  Size exact{0, 0};
  /// Largest length of the longer side; 0 = any length. An image that would exceed it is resized to
  /// this length, in proportion. A value that is not 0 must be above `size`, and `exact` must then
  /// be {0, 0}.
  int max_size = 0;
};

/// Takes the centred window of the output's size: torchvision's `CenterCrop`. Pixels outside a
/// smaller image are zero.
struct CenterCrop {};

/// Takes five windows of the output's size: the four corners (top left, top right, bottom left,
/// bottom right) and the centre. It is torchvision's `FiveCrop`. A sample's image then has the
/// shape [5, height, width, 3]. Later operations run on each window, with the same random numbers.
/// An image that is smaller than the output is a bad record.
struct FiveCrop {};

/// Takes the five windows of `FiveCrop`, and those of the flipped image: torchvision's `TenCrop`.
/// The flip is left to right, or top to bottom with `vertical_flip`. A sample's image then has the
/// shape [10, height, width, 3].
struct TenCrop {
  bool vertical_flip = false;
};

/// Content of a border. The names are those of torchvision and `numpy.pad`.
enum class PaddingMode {
  constant,   ///< a colour
  edge,       ///< the outermost pixel, repeated
  reflect,    ///< the image mirrored at its outermost pixels, which are not repeated
  symmetric,  ///< the image mirrored at its edge, so that the outermost pixels are repeated
};

/// The widths of a border in pixels, from 0 to 16,384. In JSON it is [left, top, right, bottom],
/// [left and right, top and bottom], or one number for all four.
struct Padding {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  friend bool operator==(const Padding&, const Padding&) = default;
};

/// Adds a border around the image: torchvision's `Pad`. It must come before the operation that
/// makes the output.
struct Pad {
  Padding padding{};
  /// Colour of a constant border.
  Colour fill{};
  PaddingMode padding_mode = PaddingMode::constant;
};

/// Takes a window of the output's size, anywhere in the image with equal probability: torchvision's
/// `RandomCrop`. The image first gets a border of `padding`. If it is then n columns narrower than
/// the output, `pad_if_needed` adds n columns on the left and n on the right, 2n in all, as
/// torchvision does. It does the same with rows. An image that is still smaller than the output is
/// a bad record.
struct RandomCrop {
  Padding padding{};
  bool pad_if_needed = false;
  /// Colour of constant borders.
  Colour fill{};
  PaddingMode padding_mode = PaddingMode::constant;
};

/// The place where images are flipped.
enum class FlipOn {
  worker,  ///< by the worker that makes the sample
  device,  ///< by the device's conversion; needs `PipelineOptions::conversion`; the result has the
           ///< same bits
};

/// Mirrors the image, left to right, with probability `p`: torchvision's `RandomHorizontalFlip`.
struct RandomHorizontalFlip {
  double p = 0.5;
  /// A flip on the device must be a recipe's last operation.
  FlipOn on = FlipOn::worker;
};

/// Mirrors the image, top to bottom, with probability `p`: torchvision's `RandomVerticalFlip`.
struct RandomVerticalFlip {
  double p = 0.5;
};

/// Resizes the given box of the image to the output: torchvision's `functional.resized_crop`. An
/// image that does not contain the box is a bad record.
struct ResizedCrop {
  Region box;
  Interpolation interpolation = Interpolation::bilinear;
};

/// Turns the image upright by its EXIF orientation: Pillow's `ImageOps.exif_transpose`. It must be
/// the first operation; later ones see the upright image. Without this operation images are not
/// turned, as in torchvision's `ImageFolder`.
struct ExifTranspose {};

// The structs of all operations: those above, and those of millrace/colour_operations.h,
// millrace/warp_operations.h and millrace/policies.h.
#define MILLRACE_OPERATION_STRUCT(Values, source) struct Values;
MILLRACE_OPERATIONS(MILLRACE_OPERATION_STRUCT)
#undef MILLRACE_OPERATION_STRUCT

class ImageOperation;

/// One operation of a recipe. Immutable; copies share their parameters.
class Operation {
 public:
  // Not explicit, so that a recipe reads as a list: {Resize{256}, CenterCrop{}}.
#define MILLRACE_OPERATION_CONSTRUCTOR(Values, source) Operation(const Values& parameters);
  MILLRACE_OPERATIONS(MILLRACE_OPERATION_CONSTRUCTOR)
#undef MILLRACE_OPERATION_CONSTRUCTOR

  /// Returns the operation in the JSON of recipes: {"op":"random_horizontal_flip","p":0.5}.
  std::string to_json() const;
  /// For millrace's own code: the implementation.
  ImageOperation& implementation() const { return *implementation_; }

  /// Returns whether both are the same operation with the same parameters.
  friend bool operator==(const Operation& a, const Operation& b) {
    return a.to_json() == b.to_json();
  }

 private:
  std::shared_ptr<ImageOperation> implementation_;
};

}  // namespace millrace
