// SPDX-License-Identifier: Apache-2.0
//
// Packing of crops of JPEGs for `CropWork`. For millrace's own folders; not installed.
#pragma once

#include <millrace/detail/crop_packer.h>
#include <millrace/detail/export.h>
#include <millrace/image_decoder.h>

#include <cstddef>
#include <memory>

namespace MILLRACE_API millrace {

/// Packs crops of baseline JPEGs, located by the seek index. It copies the entropy-coded data that
/// a crop needs and decodes nothing. For one thread at a time.
class JpegCropPacker {
 public:
  JpegCropPacker();
  ~JpegCropPacker();
  JpegCropPacker(const JpegCropPacker&) = delete;
  JpegCropPacker& operator=(const JpegCropPacker&) = delete;

  /// Takes the image that a decoder has opened and the index that it uses
  /// (`ImageDecoder::use_index`). Returns false if the image cannot be packed: it is not a baseline
  /// JPEG of one scan, has no index, or has corrupt or more than `CropScan::max_codes` Huffman
  /// codes. Also returns false for an image with restart markers in each row whose index does not
  /// reach its end, since the decoder does not use such an index. The image must stay open for
  /// `measure`.
  bool open(ImageDecoder& decoder);

  /// Returns the bytes of the packed crop. Returns 0 in the cases in which `CropPacker::measure`
  /// sets 0 bytes. Also returns 0 if the index lacks the crop's last tile, if the data has other
  /// markers than a valid scan, or if the scan has 256 MiB or more. Throws `Error`
  /// (`invalid_argument`) if the region does not lie in the image.
  std::size_t measure(const Crop& crop, std::size_t max_scratch);
  /// Returns the bytes of scratch for the crop that was measured last.
  std::size_t scratch_bytes() const;
  /// Packs the crop that was measured last to `to`, which is aligned to `CropWork::input_unit`. The
  /// crop's weights must still be valid. The image may be closed.
  void pack(std::byte* to) const;

 private:
  struct Source;
  std::unique_ptr<Source> source_;
};

}  // namespace millrace
