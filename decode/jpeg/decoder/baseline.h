// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"
#include "jpeg/decoder/region_pixels.h"
#include "jpeg/entropy.h"
#include "jpeg/frame.h"
#include "jpeg/index.h"

namespace millrace::jpeg {

/// Decodes regions of baseline JPEGs. The entropy stage skips the MCUs before and beside the
/// region. The pixel stage makes pixels of the others, one row of MCUs at a time. The result equals
/// libjpeg-turbo's decode of the whole to the bit. Calls return false for data that a valid file
/// does not have; libjpeg-turbo must then decode the image. One thread at a time.
class BaselineDecoder {
 public:
  /// Decodes a region of the frame into rows of RGB, which are `RegionPixels::stride_of(width)`
  /// bytes apart. `reduction` is 1, 2, 4 or 8. Above 1, the region lies in the frame at
  /// 1/`reduction` of its resolution, with its sides rounded up. The pixels then differ from those
  /// of other decoders. An index saves time where it has points, and gets the new points.
  bool decode(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels,
              SeekIndex* index = nullptr);
  /// Does the same in two steps. `decode_interleaved` may do some or all of the work between them.
  /// The arguments of `begin` must outlive `finish`.
  void begin(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels,
             SeekIndex* index = nullptr);
  bool finish();
  /// Continues two decodes that have begun, interleaved, until one of them has no work left that
  /// can be interleaved. If one has none at the call, returns at once. This takes less time than
  /// one decode after the other.
  static void decode_interleaved(BaselineDecoder& a, BaselineDecoder& b);
  /// Returns whether `decode_interleaved` has work left. It has none if the index or restart
  /// markers tell where all rows begin. `finish` then interleaves two rows of the image, which is
  /// faster, since they share their tables.
  bool can_interleave() const { return run_ != nullptr; }
  /// Checks the image: skips all MCUs up to its end. An index, if given, must be empty, and gets
  /// the points of all tiles.
  bool check(const Frame& frame, SeekIndex* index = nullptr);
  /// Returns whether the last `decode` or `check` skipped stray bytes before a marker.
  bool skipped_stray_bytes() const { return entropy_.skipped_stray_bytes(); }

 private:
  const McuWindow& window() const { return region_.window(); }
  std::array<int, 3> last_zigzag_indices() const {
    return {last_place_of(region_.side_of(0)), last_place_of(region_.side_of(1)),
            last_place_of(region_.side_of(2))};
  }
  std::int64_t skipped_mcus(const Frame& frame, const SeekIndex* index) const;
  std::int64_t first_mcu(int row) const {
    return std::int64_t{frame_->mcus_across} * row + window().first_mcu;
  }
  void start(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels,
             SeekIndex* index);
  void begin_row();
  bool reach_end();
  McuRun* next_run();
  void finish_rows(int count);

  const Frame* frame_ = nullptr;
  EntropyDecoder entropy_;
  /// Whether no corrupt data has been found yet.
  bool valid_so_far_ = false;
  /// The next row of MCUs, and whether the entropy stage has begun it.
  int mcu_row_ = 0;
  bool row_begun_ = false;
  /// The run of that row that can be interleaved, or nullptr.
  McuRun* run_ = nullptr;
  /// Two rows of MCUs are decoded at once where the index or restart markers allow it.
  std::array<CoefficientRow, 2> rows_;
  RegionPixels region_;
};

}  // namespace millrace::jpeg
