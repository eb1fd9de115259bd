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

#include "ops/fold.h"
#include "ops/scratch.h"
#include "pixels/warp.h"

namespace millrace {

/// The largest width or height of an image that is made.
inline constexpr int largest_side = 16384;

/// How a parameter of several numbers is written.
struct NumberList {
  /// In words: "two numbers, [width, height]".
  const char* what;
  /// How many numbers there may be; zeros fill up. One is written without [ ].
  std::array<std::size_t, 3> counts;
  Range limits;
  bool whole = false;
  /// Whether they are the lower and upper ends of ranges in turn.
  bool ranges = false;
  bool odd = false;
  /// Whether they are weights: as many as the first of `counts`, and one of them above 0.
  bool weights = false;
  /// Whether null in JSON, torchvision's None, is refused and not the default.
  bool required = false;
};

/// The range that one number stands for, in torchvision's way.
enum class OneNumber {
  refused,
  around_zero,  ///< [-x, x]
  around_one,   ///< [max(0, 1 - x), 1 + x]
  both_ends,    ///< [x, x]
};

/// What an operation tells its parameters to, one by one: they are read from JSON there, written to
/// it, or checked. Each call gives the parameter's key, its value and the limits of it, both
/// included.
class Parameters {
 public:
  virtual ~Parameters() = default;
  virtual void number(const char* key, double& value, Range limits) = 0;
  virtual void integer(const char* key, int& value, int low, int high) = 0;
  /// Where the limits are not below 0, its upper end is above 0.
  virtual void range(const char* key, Range& value, Range limits, OneNumber one) = 0;
  /// An empty list is not written.
  virtual void numbers(const char* key, std::vector<double>& value, const NumberList& list) = 0;
  /// A region of an image: [x, y, width, height], none of them negative, not empty.
  virtual void region(const char* key, Region& value) = 0;
  virtual void flag(const char* key, bool& value) = 0;
  /// The name of something else; an empty one is not written.
  virtual void name(const char* key, std::string& value) = 0;
  /// Red, green and blue; one number in JSON is a grey.
  virtual void colour(const char* key, Colour& value) = 0;
  /// Operations that this one runs, which run in place on pixels; at least one. JSON may call them
  /// "transforms", as torchvision does.
  virtual void operations(const char* key, std::vector<Operation>& value) = 0;
  /// One of `names`; the first is the default and is not written.
  virtual void choice(const char* key, std::size_t& value, std::span<const char* const> names) = 0;
  /// A parameter of torchvision's that changes nothing here: JSON may give it one of these values.
  virtual void only(const char* /*key*/, std::span<const char* const> /*values*/) {}
  /// The size of the output, which the recipe has; JSON may give it here, as torchvision does.
  virtual void output(const char* /*key*/) {}

  /// The same for an enumeration whose values have the names in their order.
  template <typename Enumeration>
  void named(const char* key, Enumeration& value, std::span<const char* const> names) {
    auto place = static_cast<std::size_t>(value);
    choice(key, place, names);
    // Operations are shared: where nothing is read, nothing may be written.
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

/// The parameters of operations that add a border.
void describe_padding(Parameters& parameters, Padding& padding, Colour& fill, PaddingMode& mode);

/// One kind of operation with its parameters. Workers call it all at once.
class ImageOperation {
 public:
  virtual ~ImageOperation() = default;
  /// As JSON names it.
  virtual const char* name() const = 0;
  /// Hands every parameter to `parameters`, which changes them where it reads JSON, before the
  /// operation is shared.
  virtual void describe(Parameters& parameters) = 0;
};

/// Moves or scales pixels, and is not run by itself but folded with others into one resampling.
class GeometricOperation : public ImageOperation {
 public:
  /// Whether the image has the output's size behind this operation.
  virtual bool makes_output() const = 0;
  /// Whether `fold` draws random numbers. What an operation that does not makes of an image may be
  /// kept for other samples of it.
  virtual bool is_random() const { return true; }
  /// How many images a sample has of one. `fold` is called for each, with the same random numbers,
  /// and `Fold::view` says for which.
  virtual int views() const { return 1; }
  /// Whether `fold` looks at the image's EXIF orientation.
  virtual bool needs_orientation() const { return false; }
  /// Adds itself to what comes before it. Returns why this is not possible, which follows from the
  /// operations alone and not from the image; nullptr if it was.
  virtual const char* fold(Fold& fold, Random& random) const = 0;
};

/// What else of a sample moves with its image: masks, boxes, keypoints. They are told of each warp
/// of it.
class Followers {
 public:
  virtual ~Followers() = default;
  virtual void warp(const AffineMap& map) = 0;
  virtual void warp(const PerspectiveMap& map) = 0;
  virtual void rotate(double degrees) = 0;
};

/// A sample's image of the output's size, and what its operations need besides.
struct SampleImage {
  /// 8-bit RGB, rows without gaps.
  std::uint8_t* pixels;
  Size size;
  Sample& sample;
  /// The worker's own.
  Scratch& scratch;
  /// Nullptr if nothing follows.
  Followers* followers = nullptr;

  std::size_t bytes() const {
    return 3 * static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
  }
};

/// Runs in place on the image that the resampling made.
class PixelOperation : public ImageOperation {
 public:
  /// Whether the resampling does it on the way: then `fold` is called, and `run` is not. Such
  /// operations stand before those that are run.
  virtual bool folds() const { return false; }
  virtual void fold(Fold&, Random&) const {}
  virtual void run(SampleImage& image, Random& random) const = 0;
  /// Whether it moves pixels without telling `SampleImage::followers`; false by default.
  virtual bool moves_alone() const { return false; }
  /// A field that it adds to the sample and fills, for the device to do the rest; none by default.
  virtual std::vector<FieldSpec> fields() const { return {}; }
};

}  // namespace millrace
