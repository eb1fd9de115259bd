// SPDX-License-Identifier: Apache-2.0
//
// Packing of crops for `CropWork`. For millrace's own folders; not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace MILLRACE_API millrace {

/// Weights of a resampling along one axis, in the layout of `CropHeader::Axis`.
struct CropAxis {
  /// Source pixel of the first weight, for each output pixel.
  std::span<const std::int32_t> begins;
  /// `taps` values for each output pixel. Those of adjacent pixels begin `stride` values apart.
  std::span<const std::int32_t> weights;
  int taps = 0;
  int stride = 0;
};

/// A part of an image and its resampling.
struct Crop {
  /// In the stored image's pixels; not empty.
  Region region;
  /// Whether the part is resized with rows and columns exchanged. The following members then
  /// describe the exchanged part.
  bool exchanged = false;
  CropAxis horizontal;
  CropAxis vertical;
  bool vertical_first = false;
};

/// Packs crops of records of the form `coefficients`. It copies tiles without reading them. For one
/// thread at a time.
class CropPacker {
 public:
  CropPacker();
  ~CropPacker();
  CropPacker(const CropPacker&) = delete;
  CropPacker& operator=(const CropPacker&) = delete;

  /// Opens a record, which must outlive the calls of `pack`. Returns a bad status for a corrupt
  /// header.
  Status open(std::span<const std::byte> record);
  /// Size of the opened record's image.
  Size size() const;

  /// Sets `bytes` to the size of the packed crop, or to 0 if the crop is wider than
  /// `CropHeader::max_width`, or needs more than `max_scratch` bytes of scratch. Returns a bad
  /// status if the record is corrupt. Throws `Error` (`invalid_argument`) if the region does not
  /// lie in the image.
  Status measure(const Crop& crop, std::size_t max_scratch, std::size_t& bytes);
  /// Returns the bytes of scratch for the crop that was measured last.
  std::size_t scratch_bytes() const;
  /// Packs the crop that was measured last to `to`, which is aligned to `CropWork::input_unit`. The
  /// crop's weights must still be valid.
  void pack(std::byte* to) const;

 private:
  struct Source;
  std::unique_ptr<Source> source_;
};

}  // namespace millrace
