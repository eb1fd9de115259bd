// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>

#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"
#include "jpeg/decoder/region_pixels.h"
#include "jpeg/index.h"
#include "jpeg/progressive/progressive_coefficients.h"
#include "jpeg/progressive/progressive_entropy.h"

namespace millrace::jpeg {

/// Decodes regions of progressive JPEGs. Each scan is read up to the region's last row of MCUs, and
/// with an index from the region's first row on. The pixel stage then makes the pixels. The result
/// equals libjpeg-turbo's decode of the whole to the bit. One thread at a time.
class ProgressiveDecoder {
 public:
  /// Decodes a region to `pixels`, in the layout of `RegionPixels::begin`. Returns false for data
  /// that a valid file does not have; libjpeg-turbo must then decode the image. An index, which may
  /// only be given if `can_have_index`, is extended to the region's last row of MCUs.
  bool decode(const Frame& frame, const Script& script, const Region& region, int reduction,
              std::uint8_t* pixels, SeekIndex* index);
  /// Makes the index of the whole image. Returns false for data that a valid file does not have.
  bool make_index(const Frame& frame, const Script& script, SeekIndex& index);

  /// Returns the bytes of memory that are kept for the next image's coefficients.
  std::size_t bytes() const { return coefficients_.bytes(); }
  void free_memory() { coefficients_.free_memory(); }

 private:
  RegionPixels region_;
  ProgressiveEntropyDecoder entropy_;
  ProgressiveCoefficients coefficients_;
  CoefficientRow row_;
};

}  // namespace millrace::jpeg
