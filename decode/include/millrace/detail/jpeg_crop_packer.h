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

/// Packs crops of baseline JPEGs by their seek index. It copies the entropy-coded data that a crop
/// needs and decodes nothing. One thread at a time.
class JpegCropPacker {
 public:
  JpegCropPacker();
  ~JpegCropPacker();
  JpegCropPacker(const JpegCropPacker&) = delete;
  JpegCropPacker& operator=(const JpegCropPacker&) = delete;

  /// Takes the image that a decoder has opened and the index that it uses
  /// (`ImageDecoder::use_index`). Returns false if the image cannot be packed: it is not a baseline
  /// JPEG of one scan, has no index, has more than `CropScan::most_codes` Huffman codes or corrupt
  /// ones. Also if it has restart markers in each row, and an index that does not reach its end:
  /// the decoder does not use such an index. The image must stay open for `measure`.
  bool open(ImageDecoder& decoder);

  /// Returns the bytes of a packed crop. Returns 0 where `CropPacker::measure` sets 0 bytes, and if
  /// the index does not have the crop's last tile, or the data has other markers than a valid scan.
  /// Throws `Error` (`invalid_argument`) if the region does not lie in the image.
  std::size_t measure(const Crop& crop, std::size_t most_scratch);
  /// Returns the bytes of scratch for the crop that was measured last.
  std::size_t scratch_bytes() const;
  /// Packs the crop that was measured last to `to`, which is aligned to `CropWork::input_unit`. Its
  /// weights must still be valid. The image need not be open any more.
  void pack(std::byte* to) const;

 private:
  struct Source;
  std::unique_ptr<Source> source_;
};

}  // namespace millrace
