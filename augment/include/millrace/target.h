// SPDX-License-Identifier: Apache-2.0
//
// Kinds of fields of a sample besides its image. Some move with the image. The structs are values:
// they may be copied, and read from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <string>
#include <variant>

namespace MILLRACE_API millrace {

/// A mask: for each pixel the number of a class or an instance. The record's field is a PNG file,
/// grey or with a palette, or the raw numbers. A PNG's numbers are those of
/// `numpy.array(PIL.Image.open(...))`. Raw numbers have the type `dtype`, row after row. The mask
/// must have the size of the image as stored. The sample's field is [output height, output width]
/// of `dtype`. Masks are resampled by torch's `nearest`, as in torchvision.
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

/// Boxes around objects. The record's field has four float32 for each box; they refer to the image
/// as stored. The sample's field is float32 [max_length, 4] of varying length: left, top, right,
/// bottom in pixels of the output. The boxes are clipped to the part that the sample shows. Boxes
/// that are then too small are dropped, as by torchvision's `SanitizeBoundingBoxes`. The keypoints
/// and values that belong to them (`of`) are dropped, too. If a warp turns a box, the result is the
/// axis-aligned box around it.
struct BoxesTarget {
  /// Largest number of boxes in a record. A record with more is bad.
  int max_length = 100;
  BoxFormat format = BoxFormat::xyxy;
  CoordinateUnit unit = CoordinateUnit::pixels;
  /// Smallest width and height in pixels, and smallest area, of a box that is kept.
  double min_size = 1;
  double min_area = 1;
  friend bool operator==(const BoxesTarget&, const BoxesTarget&) = default;
};

/// Points. The record's field has a row of float32 for each point: x, y and, if `values` is 3, a
/// number that stays unchanged. The sample's field is float32 [max_length, points, values] of
/// varying length; the axis `points` is left out if `points` is 1. The coordinates are pixels of
/// the output, as in torchvision's `KeyPoints`, and may lie outside the output. A flip changes x to
/// width - 1 - x.
struct KeypointsTarget {
  /// Largest number of objects in a record, with `points` points each. A record with more is bad.
  /// If `of` names boxes, their `max_length` applies instead.
  int max_length = 17;
  int points = 1;
  int values = 2;
  CoordinateUnit unit = CoordinateUnit::pixels;
  /// Field name of the boxes to which these objects belong, one to one. An object is dropped with
  /// its box. Empty = the objects are independent of boxes.
  std::string of{};
  friend bool operator==(const KeypointsTarget&, const KeypointsTarget&) = default;
};

/// Values that do not move with the image: labels of boxes, floats, multi-hot labels, text. They
/// are little-endian in the record's field, as in the memory of x86 and ARM.
struct ValuesTarget {
  DType dtype = DType::int64;
  /// Shape of the field, or of one value if their number varies.
  Shape shape{};
  /// Largest number of values, if the number varies. The sample's field then has this axis before
  /// `shape`. A record with more is bad. 0 = the number is fixed, or `of` names boxes, whose
  /// `max_length` applies.
  int max_length = 0;
  std::string of{};
  friend bool operator==(const ValuesTarget&, const ValuesTarget&) = default;
};

/// Values of the type that the dataset's records have, for a field that not every dataset has.
/// `recipe_for` determines the type from the dataset. If the records lack the field, samples lack
/// it, too. An int64 is an int64 scalar. For any other type `recipe_for` makes a `ValuesTarget`
/// from the dataset's `field_specs`. If these lack the field, it reads up to 8 records. A text is
/// uint8 of varying length. Without a dataset the type is an int64 scalar.
struct StoredTarget {
  friend bool operator==(const StoredTarget&, const StoredTarget&) = default;
};

/// A field of the record from which a field of the sample is made, and its kind.
struct Target {
  /// Its name in records and in samples.
  std::string field;
  std::variant<MaskTarget, BoxesTarget, KeypointsTarget, ValuesTarget, StoredTarget> is;
  friend bool operator==(const Target&, const Target&) = default;
};

}  // namespace millrace
