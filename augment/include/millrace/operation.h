// SPDX-License-Identifier: Apache-2.0
//
// The operations of a recipe and their parameters, in torchvision's names. These are values: they
// may be copied, and read from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/geometry.h>

#include <memory>
#include <string>
#include <utility>

namespace MILLRACE_API millrace {

/// How pixels are made of others when an image is resized: Pillow's filters, antialiased where the
/// image shrinks (all but `nearest`).
enum class Interpolation { bilinear, bicubic, box, hamming, lanczos, nearest };

/// The version of Pillow whose pixels a resized image equals to the bit. Where the height h of what
/// is resized is above the new height H, and h - H > 2 x (w - W), Pillow resizes vertically first
/// since version 13; in all other cases, and always before, horizontally first. As the result of
/// the first pass has 8 bits, some pixels differ by a level.
enum class Like {
  pillow_13,  ///< 13.0 and later
  pillow_12,  ///< before 13.0
};

/// An 8-bit colour.
struct Colour {
  int red = 0;
  int green = 0;
  int blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

/// Of what resolution an image is decoded.
enum class Resolution {
  exact,    ///< its own: the pixels are those of Pillow's resize of the whole
  reduced,  ///< the lowest of 1/2, 1/4 and 1/8 that the output does not exceed, if there is one
};

/// A random box of the image, resized to the output: torchvision's `RandomResizedCrop`.
struct RandomResizedCrop {
  /// Share of the image's area.
  Range scale{0.08, 1.0};
  /// Width / height.
  Range ratio{3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::bilinear;
};

/// The shorter side resized to `size`, the longer one in proportion: torchvision's `Resize(int)`.
struct Resize {
  int size = 256;
  Interpolation interpolation = Interpolation::bilinear;
  /// If it is not empty, the image is resized to this instead, whatever its proportions:
  /// torchvision's `Resize((height, width))`. In JSON it is "size": [width, height].
  Size exact{0, 0};
  /// The longest that the longer side becomes; the image is smaller then. 0 = any. It is above
  /// `size`, and cannot be given with `exact`.
  int max_size = 0;
};

/// The centred window of the output's size: torchvision's `CenterCrop`. What lies outside a smaller
/// image is zero.
struct CenterCrop {};

/// Five windows of the output's size: the corners (top left, top right, bottom left, bottom right)
/// and the centre, torchvision's `FiveCrop`. A sample's image is then [5, height, width, 3]. What
/// comes later runs on each of them, with the same random numbers. An image that is smaller than
/// the output is a bad record.
struct FiveCrop {};

/// These five and the five of the image that is flipped, left to right, or with `vertical_flip` top
/// to bottom: torchvision's `TenCrop`. A sample's image is then [10, height, width, 3].
struct TenCrop {
  bool vertical_flip = false;
};

/// What stands in the border of a padded image. The names are those of torchvision and `numpy.pad`.
enum class PaddingMode {
  constant,   ///< a colour
  edge,       ///< the outermost pixel again and again
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

/// A border around the image: torchvision's `Pad`. It comes before the operation that makes the
/// output.
struct Pad {
  Padding padding{};
  /// Of a constant border.
  Colour fill{};
  PaddingMode padding_mode = PaddingMode::constant;
};

/// A window of the output's size, anywhere in the image with equal probability: torchvision's
/// `RandomCrop`. The image gets a border of `padding` before, and with `pad_if_needed` one on both
/// sides that makes up for what it lacks. An image that is smaller than the output is a bad record.
struct RandomCrop {
  Padding padding{};
  bool pad_if_needed = false;
  /// Of constant borders.
  Colour fill{};
  PaddingMode padding_mode = PaddingMode::constant;
};

/// Where images are flipped.
enum class FlipOn {
  worker,  ///< by the worker that makes the sample
  device,  ///< by the device that converts it, which needs `PipelineOptions::conversion`; the
           ///< result has the same bits
};

/// The mirrored image with probability `p`: torchvision's `RandomHorizontalFlip`.
struct RandomHorizontalFlip {
  double p = 0.5;
  /// An operation on the device is a recipe's last one.
  FlipOn on = FlipOn::worker;
};

/// The image upside down with probability `p`: torchvision's `RandomVerticalFlip`.
struct RandomVerticalFlip {
  double p = 0.5;
};

/// This box of the image, resized to the output: torchvision's `functional.resized_crop`. An image
/// that the box does not lie in is a bad record.
struct ResizedCrop {
  Region box;
  Interpolation interpolation = Interpolation::bilinear;
};

/// The image turned upright, as its EXIF orientation says: Pillow's `ImageOps.exif_transpose`. It
/// is the first operation; those that follow see the upright image. torchvision's `ImageFolder`
/// does not do it, nor does a recipe without this operation.
struct ExifTranspose {};

// In millrace/colour_operations.h.
struct ColorJitter;
struct Grayscale;
struct RandomGrayscale;
struct GaussianBlur;
struct RandomSolarize;
struct RandomPosterize;
struct RandomEqualize;
struct RandomAutocontrast;
struct RandomInvert;
struct RandomAdjustSharpness;

// In millrace/warp_operations.h.
struct RandomAffine;
struct RandomRotation;
struct RandomPerspective;
struct RandomErasing;

// In millrace/policies.h.
struct RandomApply;
struct RandomChoice;
struct RandAugment;
struct TrivialAugmentWide;
struct AutoAugment;
struct AugMix;
struct ThreeAugment;

class ImageOperation;

/// One operation of a recipe. Immutable; copies share what they hold.
class Operation {
 public:
  // Not explicit, so that a recipe reads as a list: {Resize{256}, CenterCrop{}}.
  Operation(const RandomResizedCrop& parameters);
  Operation(const Resize& parameters);
  Operation(const CenterCrop& parameters);
  Operation(const FiveCrop& parameters);
  Operation(const TenCrop& parameters);
  Operation(const Pad& parameters);
  Operation(const RandomCrop& parameters);
  Operation(const RandomHorizontalFlip& parameters);
  Operation(const RandomVerticalFlip& parameters);
  Operation(const RandomAffine& parameters);
  Operation(const RandomRotation& parameters);
  Operation(const RandomPerspective& parameters);
  Operation(const RandomErasing& parameters);
  Operation(const ResizedCrop& parameters);
  Operation(const ExifTranspose& parameters);
  Operation(const ColorJitter& parameters);
  Operation(const Grayscale& parameters);
  Operation(const RandomGrayscale& parameters);
  Operation(const GaussianBlur& parameters);
  Operation(const RandomSolarize& parameters);
  Operation(const RandomPosterize& parameters);
  Operation(const RandomEqualize& parameters);
  Operation(const RandomAutocontrast& parameters);
  Operation(const RandomInvert& parameters);
  Operation(const RandomAdjustSharpness& parameters);
  Operation(const RandomApply& parameters);
  Operation(const RandomChoice& parameters);
  Operation(const RandAugment& parameters);
  Operation(const TrivialAugmentWide& parameters);
  Operation(const AutoAugment& parameters);
  Operation(const AugMix& parameters);
  Operation(const ThreeAugment& parameters);
  /// The library's own: any operation that its JSON names.
  explicit Operation(std::shared_ptr<ImageOperation> held) : held_(std::move(held)) {}

  /// As it is written in a recipe: {"op":"random_horizontal_flip","p":0.5}.
  std::string to_json() const;
  /// The library's own: what it does.
  ImageOperation& held() const { return *held_; }

  /// Whether both are the same operation with the same parameters.
  friend bool operator==(const Operation& a, const Operation& b) {
    return a.to_json() == b.to_json();
  }

 private:
  std::shared_ptr<ImageOperation> held_;
};

}  // namespace millrace
