// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/operation.h>
#include <millrace/random.h>
#include <millrace/transform.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/resample_plan.h"
#include "ops/scratch.h"
#include "pixels/warp.h"

namespace millrace {

/// The largest width or height of an image that is made.
inline constexpr int largest_side = 16384;

/// Rules for a parameter of several numbers.
struct NumberList {
  /// Description for messages: "two numbers, [width, height]".
  const char* what;
  /// Allowed lengths of the list; unused entries are 0. In JSON a single number is written without
  /// [ ].
  std::array<std::size_t, 3> counts;
  Range limits;
  bool whole = false;
  /// Whether they are the lower and upper ends of ranges, alternating.
  bool ranges = false;
  bool odd = false;
  /// Whether they are weights: as many as the first of `counts`, and at least one above 0.
  bool weights = false;
  /// Whether null in JSON (torchvision's None) is refused, instead of meaning the default.
  bool required = false;
};

/// The range that a single number means, as in torchvision.
enum class OneNumber {
  refused,
  around_zero,  ///< [-x, x]
  around_one,   ///< [max(0, 1 - x), 1 + x]
  both_ends,    ///< [x, x]
};

/// Visitor of an operation's parameters: it reads them from JSON, writes JSON, or checks them. Each
/// call has the parameter's key, its value and the value's limits. Both limits are allowed values.
class Parameters {
 public:
  virtual ~Parameters() = default;
  virtual void number(const char* key, double& value, Range limits) = 0;
  virtual void integer(const char* key, int& value, int low, int high) = 0;
  /// If the limits are not below 0, the range's upper end must be above 0.
  virtual void range(const char* key, Range& value, Range limits, OneNumber one) = 0;
  /// An empty list is not written.
  virtual void numbers(const char* key, std::vector<double>& value, const NumberList& list) = 0;
  /// A region of an image: [x, y, width, height]. x and y are not negative, width and height are at
  /// least 1.
  virtual void region(const char* key, Region& value) = 0;
  virtual void flag(const char* key, bool& value) = 0;
  /// The name of another field; an empty one is not written.
  virtual void name(const char* key, std::string& value) = 0;
  /// Red, green and blue; one number in JSON is a grey.
  virtual void colour(const char* key, Colour& value) = 0;
  /// Operations on pixels that this one runs in place; at least one. JSON may call them
  /// "transforms", as torchvision does.
  virtual void operations(const char* key, std::vector<Operation>& value) = 0;
  /// One of `names`; the first is the default and is not written.
  virtual void choice(const char* key, std::size_t& value, std::span<const char* const> names) = 0;
  /// A parameter of torchvision's without effect here. JSON may give it one of these values.
  virtual void only(const char* /*key*/, std::span<const char* const> /*values*/) {}
  /// The size of the output. The recipe has it; JSON may give it here, as torchvision does.
  virtual void output(const char* /*key*/) {}

  /// An enumeration whose values have `names`, in their order.
  template <typename Enumeration>
  void named(const char* key, Enumeration& value, std::span<const char* const> names) {
    auto place = static_cast<std::size_t>(value);
    choice(key, place, names);
    // Operations are shared, so a value that was not read must not be written.
    if (place != static_cast<std::size_t>(value)) value = static_cast<Enumeration>(place);
  }
};

/// The parameter of operations that resize.
inline void describe_interpolation(Parameters& parameters, Interpolation& interpolation) {
  constexpr const char* names[] = {"bilinear", "bicubic", "box", "hamming", "lanczos", "nearest"};
  parameters.named("interpolation", interpolation, names);
  // torchvision's PIL images are always antialiased.
  constexpr const char* ignored[] = {"true", "false", "null"};
  parameters.only("antialias", ignored);
}

/// Describes the parameters of operations that add a border.
void describe_padding(Parameters& parameters, Padding& padding, Colour& fill, PaddingMode& mode);

/// One kind of operation with its parameters. Several workers call it at once.
class ImageOperation {
 public:
  virtual ~ImageOperation() = default;
  /// Returns the operation's name in JSON.
  virtual const char* name() const = 0;
  /// Passes every parameter to `parameters`. A visitor that reads JSON changes them, before the
  /// operation is shared.
  virtual void describe(Parameters& parameters) = 0;
};

/// An operation that moves or scales pixels. It does not run by itself: it is combined (folded)
/// with others into one resampling.
class GeometricOperation : public ImageOperation {
 public:
  /// Returns whether the image has the output's size after this operation.
  virtual bool makes_output() const = 0;
  /// Returns whether `plan` draws random numbers. The result of an operation that draws none may be
  /// cached for later samples of the image.
  virtual bool is_random() const { return true; }
  /// Returns the number of images that a sample has. `plan` is called for each image, with the same
  /// random numbers; `ResamplePlan::view` is the image's number.
  virtual int views() const { return 1; }
  /// Returns whether `plan` reads the image's EXIF orientation.
  virtual bool needs_orientation() const { return false; }
  /// Returns whether it can add a border that repeats the image's pixels. The output then may have
  /// no place for the window that `PaddingMap` fills it from.
  virtual bool repeats_pixels() const { return false; }
  /// Adds the operation to those folded before it. Returns nullptr, or the reason why this is not
  /// possible. The reason depends only on the operations, not on the image.
  virtual const char* plan(ResamplePlan& plan, Random& random) const = 0;
};

/// Targets of a sample that move with its image: masks, boxes, keypoints. Each warp of the image
/// calls one of these functions.
class SpatialTargets {
 public:
  virtual ~SpatialTargets() = default;
  virtual void warp(const AffineMap& map) = 0;
  virtual void warp(const PerspectiveMap& map) = 0;
  virtual void rotate(double degrees) = 0;
};

/// Returns the bytes of an image of 8-bit RGB.
inline std::size_t rgb_bytes(Size size) {
  return 3 * static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
}

/// A sample's image of the output's size, and the other things that its operations need.
struct SampleImage {
  /// 8-bit RGB, rows without gaps.
  std::uint8_t* pixels;
  Size size;
  Sample& sample;
  /// The worker's own scratch.
  Scratch& scratch;
  /// nullptr if nothing moves with the image.
  SpatialTargets* spatial_targets = nullptr;

  std::size_t bytes() const { return rgb_bytes(size); }
};

/// An operation that runs in place on the image that the resampling made.
class PixelOperation : public ImageOperation {
 public:
  /// Returns whether the resampling includes the operation. `plan` is then called instead of `run`.
  /// Such operations precede those that run.
  virtual bool joins_resampling() const { return false; }
  virtual void plan(ResamplePlan&, Random&) const {}
  virtual void run(SampleImage& image, Random& random) const = 0;
  /// Returns the most memory that `run` borrows of `SampleImage::scratch` for an image of `size`;
  /// none by default.
  virtual ScratchSizes scratch(Size /*size*/) const { return {}; }
  /// Returns whether it moves pixels without a call of `SampleImage::spatial_targets`; false by
  /// default.
  virtual bool moves_alone() const { return false; }
  /// Returns the fields that it adds to the sample and fills, so that the device does the rest;
  /// none by default.
  virtual std::vector<FieldSpec> fields() const { return {}; }
};

}  // namespace millrace
