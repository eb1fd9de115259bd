// SPDX-License-Identifier: Apache-2.0
//
// What a sample has beside its image, and which of it moves with the image. These are values: they
// may be copied, and read from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <string>
#include <variant>

namespace MILLRACE_API millrace {

/// A number for each pixel, of a class or an instance. The record's field is a PNG file of grey or
/// with a palette, whose values are `numpy.array(PIL.Image.open(...))`'s, or the numbers
/// themselves, of `dtype`, row after row; it has the size of the image as stored. The sample's is
/// [output height, output width] of `dtype`. It is resampled as torchvision does masks: `nearest`,
/// of what torch calls that.
struct MaskTarget {
  /// `uint8` or `uint16`. A number that it does not hold is a bad record.
  DType dtype = DType::uint8;
  /// The number where the sample shows no pixel of the image: borders, and what a warp leaves.
  int fill = 0;
  friend bool operator==(const MaskTarget&, const MaskTarget&) = default;
};

/// How the four numbers of a box are meant.
enum class BoxFormat {
  xyxy,    ///< left, top, right, bottom
  xywh,    ///< left, top, width, height
  cxcywh,  ///< middle, width, height
};

enum class CoordinateUnit {
  pixels,     ///< of the image as stored
  fractions,  ///< of its width and height
};

/// Boxes around things. The record's field has four float32 for each, of the image as stored; the
/// sample's is float32 [max_length, 4], and varies: left, top, right, bottom in pixels of the
/// output. They are clipped to what the sample shows, and those too small then are dropped, with
/// what is `of` them, as torchvision's `SanitizeBoundingBoxes` does. What a warp turns gets the box
/// around it.
struct BoxesTarget {
  /// How many a record may have; one with more is bad.
  int max_length = 100;
  BoxFormat format = BoxFormat::xyxy;
  CoordinateUnit unit = CoordinateUnit::pixels;
  /// The smallest width and height, in pixels, and the smallest area that is kept.
  double min_size = 1;
  double min_area = 1;
  friend bool operator==(const BoxesTarget&, const BoxesTarget&) = default;
};

/// Points. The record's field has float32 rows of x, y and, if `values` is 3, a number that is
/// handed on as it is; the sample's is float32 [max_length, points, values] and varies, without
/// `points` if that is 1. They are in pixels of the output, as torchvision's `KeyPoints`, and may
/// lie outside of it. A flip takes x to width - 1 - x.
struct KeypointsTarget {
  /// How many things with so many `points` a record may have; one with more is bad. If they are
  /// `of` boxes it is theirs.
  int max_length = 17;
  int points = 1;
  int values = 2;
  CoordinateUnit unit = CoordinateUnit::pixels;
  /// The name of the boxes that these belong to, one by one, and are dropped with; empty: none.
  std::string of{};
  friend bool operator==(const KeypointsTarget&, const KeypointsTarget&) = default;
};

/// Values that do not move: labels of boxes, floats, multi-hot labels, text. The record's field has
/// them as a machine of x86 or ARM has them in memory.
struct ValuesTarget {
  DType dtype = DType::int64;
  /// Of the field, or of one of those that vary in number.
  Shape shape{};
  /// How many there may be, where they vary in number: the sample's field has this in front of its
  /// shape. A record with more is bad. 0: they do not vary, or are `of` boxes, which have theirs.
  int max_length = 0;
  std::string of{};
  friend bool operator==(const ValuesTarget&, const ValuesTarget&) = default;
};

/// Values as a dataset's records have them, for a field that not every dataset has. Where no record
/// has the field, samples have none. An int64 stays a scalar; any other value is the `ValuesTarget`
/// that the dataset's `field_specs` describe, or else that 8 records show: a text is uint8 and
/// varies in length. `recipe_for` looks at the dataset; without one this is an int64 scalar.
struct StoredTarget {
  friend bool operator==(const StoredTarget&, const StoredTarget&) = default;
};

/// A field of records that samples have, and what it is.
struct Target {
  /// Its name in records and in samples.
  std::string field;
  std::variant<MaskTarget, BoxesTarget, KeypointsTarget, ValuesTarget, StoredTarget> is;
  friend bool operator==(const Target&, const Target&) = default;
};

}  // namespace millrace
