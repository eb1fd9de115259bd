// SPDX-License-Identifier: Apache-2.0
//
// The fields of a sample besides its image, and how they move with the image. These are values:
// they may be copied, and read from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <string>
#include <variant>

namespace MILLRACE_API millrace {

/// A mask: a number for each pixel, of a class or an instance. The record's field is a PNG file,
/// grey or with a palette, or the raw numbers. A PNG's values are those of
/// `numpy.array(PIL.Image.open(...))`. Raw numbers have the type `dtype`, row after row. Either has
/// the size of the image as stored. The sample's field is [output height, output width] of `dtype`.
/// It is resampled as torchvision resamples masks, by torch's `nearest`.
struct MaskTarget {
  /// `uint8` or `uint16`. A record with a number that does not fit is bad.
  DType dtype = DType::uint8;
  /// The number where the sample shows no pixel of the image: in borders, and outside a warped
  /// image.
  int fill = 0;
  friend bool operator==(const MaskTarget&, const MaskTarget&) = default;
};

/// The meaning of a box's four numbers.
enum class BoxFormat {
  xyxy,    ///< left, top, right, bottom
  xywh,    ///< left, top, width, height
  cxcywh,  ///< middle, width, height
};

enum class CoordinateUnit {
  pixels,     ///< pixels of the image as stored
  fractions,  ///< fractions of its width and height
};

/// Boxes around things. The record's field has four float32 for each box, in the image as stored.
/// The sample's field is float32 [max_length, 4] of varying length: left, top, right, bottom in
/// pixels of the output. The boxes are clipped to the part that the sample shows. Those that are
/// too small then are dropped, as torchvision's `SanitizeBoundingBoxes` does, together with the
/// targets that are `of` them. A box that a warp turns becomes the upright box around it.
struct BoxesTarget {
  /// The largest number of boxes of a record; a record with more is bad.
  int max_length = 100;
  BoxFormat format = BoxFormat::xyxy;
  CoordinateUnit unit = CoordinateUnit::pixels;
  /// The smallest width and height, in pixels, and the smallest area of a box that is kept.
  double min_size = 1;
  double min_area = 1;
  friend bool operator==(const BoxesTarget&, const BoxesTarget&) = default;
};

/// Points. The record's field has float32 rows of x, y and, if `values` is 3, a number that is
/// passed on unchanged. The sample's field is float32 [max_length, points, values] of varying
/// length; the axis `points` is left out if it is 1. The coordinates are pixels of the output, as
/// torchvision's `KeyPoints`, and may lie outside of it. A flip takes x to width - 1 - x.
struct KeypointsTarget {
  /// The largest number of things, with `points` points each, of a record; a record with more is
  /// bad. If they are `of` boxes, the boxes' number applies.
  int max_length = 17;
  int points = 1;
  int values = 2;
  CoordinateUnit unit = CoordinateUnit::pixels;
  /// The name of the boxes that these belong to, one to one. They are dropped with their boxes.
  /// Empty: they belong to no boxes.
  std::string of{};
  friend bool operator==(const KeypointsTarget&, const KeypointsTarget&) = default;
};

/// Values that do not move: labels of boxes, floats, multi-hot labels, text. The record's field has
/// them little-endian, as x86 and ARM have them in memory.
struct ValuesTarget {
  DType dtype = DType::int64;
  /// Shape of the field, or of one value if their number varies.
  Shape shape{};
  /// The largest number of values, if it varies; the sample's field then has this axis before
  /// `shape`. A record with more is bad. 0: the number does not vary, or the values are `of` boxes,
  /// whose number applies.
  int max_length = 0;
  std::string of{};
  friend bool operator==(const ValuesTarget&, const ValuesTarget&) = default;
};

/// Values as a dataset's records have them, for a field that not every dataset has. If the records
/// lack the field, samples lack it, too. An int64 stays a scalar. Any other value is the
/// `ValuesTarget` that the dataset's `field_specs` describe, or otherwise the one that 8 records
/// suggest; a text is uint8 of varying length. `recipe_for` looks at the dataset. Without a dataset
/// this is an int64 scalar.
struct StoredTarget {
  friend bool operator==(const StoredTarget&, const StoredTarget&) = default;
};

/// A field of records that samples have, and its kind.
struct Target {
  /// Its name in records and in samples.
  std::string field;
  std::variant<MaskTarget, BoxesTarget, KeypointsTarget, ValuesTarget, StoredTarget> is;
  friend bool operator==(const Target&, const Target&) = default;
};

}  // namespace millrace
