// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jpeg/coefficients.h"
#include "jpeg/entropy.h"
#include "jpeg/frame.h"
#include "jpeg/idct.h"
#include "jpeg/index.h"

namespace millrace::jpeg {

/// Decodes regions of baseline JPEGs: the entropy stage passes over what stands before and beside
/// the region, and the pixel stage makes what it needs of the rest, one row of MCUs at a time.
/// What it makes equals libjpeg-turbo's decode of the whole, to the bit. Where it finds anything
/// that a sound file does not have, it returns false; libjpeg-turbo then says what becomes of it.
/// One thread at a time.
class BaselineDecoder {
 public:
  /// The bytes from one row of `width` pixels to the next, in what `decode` writes.
  static std::size_t stride_of(int width);

  /// Decodes a region that lies in the frame into rows of RGB, `stride_of` its width apart. With a
  /// `reduction` of 2, 4 or 8 instead of 1 the region lies in the frame at that part of its
  /// resolution, its sides rounded up; what is made is then no other decoder's.
  /// An index makes it quicker where it has points, and gets those that are noted on the way.
  bool decode(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels,
              SeekIndex* index = nullptr);
  /// The same in two steps, between which `take_turns` may do some or all of it: what was given to
  /// `begin` must outlive `finish`.
  void begin(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels,
             SeekIndex* index = nullptr);
  bool finish();
  /// Goes on with two decodes that have begun, in turn, until no turns are left to one of them:
  /// this takes less time than one after the other. At once if that is so already.
  static void take_turns(BaselineDecoder& a, BaselineDecoder& b);
  /// Whether there are turns left. There are none where the index or restart markers tell where all
  /// rows begin: `finish` decodes two of these in turn, which is faster: they share their tables.
  bool has_turns() const { return run_ != nullptr; }
  /// Passes over all MCUs up to the image's end. An index, which is empty, gets all its points.
  bool check(const Frame& frame, SeekIndex* index = nullptr);
  /// Whether the last `decode` or `check` skipped stray bytes before a marker.
  bool skipped_stray_bytes() const { return entropy_.skipped_stray_bytes(); }

 private:
  /// Samples of one component in one row of MCUs; of components whose neighbours above are looked
  /// at, the last row of the row before, too.
  struct Plane {
    std::vector<std::uint8_t> samples;
    std::size_t stride = 0;
    StepsOfGroup steps;

    std::uint8_t* row(int number) {
      return samples.data() + static_cast<std::size_t>(number + 1) * stride;
    }
  };
  /// The image as it is made, at its own resolution or a lower one.
  struct Grid {
    /// Samples on a side of what is made of a block, by component.
    std::array<int, 3> sides{};
    int mcu_width = 0;
    int mcu_height = 0;
    /// Pixels to a sample of chroma.
    int across = 1;
    int down = 1;
    int chroma_width = 0;
    int chroma_height = 0;
  };
  /// What of the frame is decoded.
  struct Window {
    Region region;
    int first_mcu = 0;
    int last_mcu = 0;
    int first_mcu_row = 0;
    int last_mcu_row = 0;
  };

  void lay_out(const Frame& frame, int reduction);
  Window window_of(const Region& region) const;
  int side_of(int component) const { return grid_.sides[static_cast<std::size_t>(component)]; }
  std::array<int, 3> last_places() const {
    return {last_place_of(side_of(0)), last_place_of(side_of(1)), last_place_of(side_of(2))};
  }
  std::int64_t skipped_mcus(const Frame& frame, const SeekIndex* index) const;
  std::int64_t first_mcu(int row) const {
    return std::int64_t{frame_->mcus_across} * row + window_.first_mcu;
  }
  void start(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels,
             SeekIndex* index);
  void aim();
  bool reach_end();
  McuRun* next_run();
  void finish_rows(int count);
  void shape(const Frame& frame);
  void make_samples(const CoefficientRow& coefficients);
  void make_pixels(int mcu_row);
  const std::uint8_t* chroma_row(int component, int mcu_row, int y);
  void keep_last_rows();

  const Frame* frame_ = nullptr;
  std::uint8_t* pixels_ = nullptr;
  EntropyDecoder entropy_;
  /// Not yet found to be unsound.
  bool sound_ = false;
  /// The row of MCUs that comes next, and whether the entropy stage aims at it.
  int mcu_row_ = 0;
  bool aimed_ = false;
  /// Of that row, if there are turns left to take.
  McuRun* run_ = nullptr;
  /// Two rows of MCUs are decoded at once where the index or restart markers allow it.
  std::array<CoefficientRow, 2> rows_;
  Grid grid_;
  Window window_;
  std::array<Plane, 3> planes_;
  std::vector<std::int16_t> sums_;
  std::array<std::vector<std::uint8_t>, 2> chroma_;
};

}  // namespace millrace::jpeg
