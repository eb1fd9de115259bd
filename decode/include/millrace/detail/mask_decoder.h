// SPDX-License-Identifier: Apache-2.0
//
// Masks: PNGs whose pixels are numbers of classes or instances. For millrace's own folders; not
// installed.
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace millrace {
class Libpng;
class PixelScratch;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// A mask's values, row after row without gaps.
struct MaskView {
  const std::uint16_t* values = nullptr;
  Size size;
};

/// Decodes masks, one after the other. Reusable; not for two threads at once. Values are those of
/// `numpy.array(PIL.Image.open(file))`. For a palette they are the indices, also those without a
/// colour. For grey they are the values: those of 2 and 4 bits are scaled to 0 to 255, those of one
/// bit are 0 and 1. Rows are in the order of the file: an orientation and transparency (tRNS) are
/// ignored.
class MaskDecoder {
 public:
  explicit MaskDecoder(std::shared_ptr<DecodeBudget> budget);
  MaskDecoder(const MaskDecoder&) = delete;
  MaskDecoder& operator=(const MaskDecoder&) = delete;
  ~MaskDecoder();

  /// Decodes the whole mask of an image of `size`, up to the end of the file. Returns a bad status,
  /// with the reason, if the bytes are not a PNG, corrupt, truncated, or coloured. Corruption is
  /// found anywhere, since each chunk has a checksum. A mask of a size other than `size` is bad;
  /// its header is enough to see that, before memory is taken. So is a mask of more than
  /// `max_pixels`, or one that takes more memory than `max_decode_bytes`. The other limits do not
  /// apply: a mask has the size of its image, and an empty mask has more pixels per byte than any
  /// photograph. The view is valid until the next call or `close`.
  ///
  /// A mask of over 16 megapixels waits for the budget (`DecodeBudget::take`). Close an image that
  /// holds a share of the same budget before the call. Throws `std::bad_alloc`.
  Status decode(std::span<const std::byte> encoded, Size size, MaskView& view);

  /// Gives its memory back to the budget.
  void close();

 private:
  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Reservation reservation_;
  std::unique_ptr<Libpng> libpng_;
  std::unique_ptr<PixelScratch> scratch_;
};

}  // namespace millrace
