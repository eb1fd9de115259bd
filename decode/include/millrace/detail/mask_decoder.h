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

/// Decodes masks, one after the other. For one thread at a time. Values equal those of
/// `numpy.array(PIL.Image.open(file))`. In a mask with a palette they are the palette indices, even
/// those without a colour. In a grey mask they are the samples: 2 and 4 bits are scaled to 0 to
/// 255, and 1 bit gives 0 or 1. Orientation and transparency (tRNS) are ignored.
class MaskDecoder {
 public:
  explicit MaskDecoder(std::shared_ptr<DecodeBudget> budget);
  MaskDecoder(const MaskDecoder&) = delete;
  MaskDecoder& operator=(const MaskDecoder&) = delete;
  ~MaskDecoder();

  /// Decodes the whole mask of an image of `size`, up to the end of the file. Returns a bad status,
  /// with the reason, if the bytes are not a PNG, are corrupt or truncated, or have colours or
  /// alpha. Corruption is found anywhere in the file, since each chunk has a checksum. The status
  /// is also bad if the mask's size is not `size`, or if the mask exceeds `max_pixels` or
  /// `max_decode_bytes`. These checks read the header alone and take no memory. Other limits do not
  /// apply, since a mask with a single value has more pixels per byte than any photograph. The view
  /// is valid until the next call or `close`.
  ///
  /// A mask of over 16 megapixels waits for the budget (`DecodeBudget::take`). Close an image that
  /// holds a share of the same budget before the call. Throws `std::bad_alloc`.
  Status decode(std::span<const std::byte> encoded, Size size, MaskView& view);

  /// Ends the view, and gives its memory back to the budget.
  void close();

 private:
  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Reservation reservation_;
  std::unique_ptr<Libpng> libpng_;
  std::unique_ptr<PixelScratch> scratch_;
};

}  // namespace millrace
