// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "measure/bench/spread.h"

namespace millrace::cli {

/// The loader compared with T, libjpeg-turbo's plain decode of whole images (`tjDecompress2`, flags
/// 0), on the same records and number of threads.
struct CeilingResult {
  /// Samples per second of the loader / images per second of T.
  Spread rate_ratio;
  /// Processor time of T's own threads per image / processor time of all other threads per sample.
  Spread cpu_ratio;
  double loader_samples_per_second = 0;
  double reference_images_per_second = 0;
  std::size_t pairs = 0;
};

/// Difference between samples at reduced resolution and exact samples of the same recipe.
struct ReducedQuality {
  std::uint64_t compared = 0;
  /// Samples that differ from the exact ones; the others were not reduced.
  std::uint64_t differing = 0;
  /// Peak signal-to-noise ratio of 8-bit values in dB: over all differing samples, and of the worst
  /// one.
  double psnr_db = 0;
  double lowest_psnr_db = 0;
};

}  // namespace millrace::cli
