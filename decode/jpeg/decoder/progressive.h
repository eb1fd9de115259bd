// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>

#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"
#include "jpeg/decoder/region_pixels.h"
#include "jpeg/progressive/progressive_coefficients.h"
#include "jpeg/progressive/progressive_entropy.h"

namespace millrace::jpeg {

/// Decodes regions of progressive JPEGs. Each scan is read up to the region's last row of MCUs. The
/// pixel stage then makes the region's pixels. The result equals libjpeg-turbo's decode of the
/// whole to the bit. One thread at a time.
class ProgressiveDecoder {
 public:
  /// Decodes a region as `RegionPixels` makes it. Returns false for data that a valid file does not
  /// have; libjpeg-turbo must then decode the image.
  bool decode(const Frame& frame, const Script& script, const Region& region, int reduction,
              std::uint8_t* pixels);

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
