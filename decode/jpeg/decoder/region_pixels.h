// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jpeg/coefficients.h"
#include "jpeg/frame.h"
#include "jpeg/idct.h"

namespace millrace::jpeg {

/// The MCUs that a region needs, and the region.
struct McuWindow {
  Region region;
  int first_mcu = 0;
  int last_mcu = 0;
  int first_mcu_row = 0;
  int last_mcu_row = 0;

  int mcus() const { return last_mcu - first_mcu + 1; }
};

/// Makes the RGB pixels of a region from quantised coefficients, one row of MCUs at a time. One
/// thread at a time.
class RegionPixels {
 public:
  /// Returns the bytes from one row of `width` pixels to the next.
  static std::size_t stride_of(int width);

  /// Begins a region of a frame. `reduction` is 1, 2, 4 or 8. Above 1, the region lies in the frame
  /// at 1/`reduction` of its resolution, with its sides rounded up. The rows of pixels lie
  /// `stride_of` the region's width apart. The frame and pixels must outlive the calls of `add`.
  void begin(const Frame& frame, const Region& region, int reduction, std::uint8_t* pixels);
  /// Returns the MCUs of the region that has begun.
  const McuWindow& window() const { return window_; }
  /// Returns the number of samples on a side of a component's decoded blocks.
  int side_of(int component) const { return grid_.sides[static_cast<std::size_t>(component)]; }
  /// Takes the coefficients of the window's MCUs in one row of MCUs. Call it for each row of the
  /// window, in order. After the last row all pixels are made. Returns the number of rows of pixels
  /// that this call has made: at most one more than the rows of an MCU.
  int add(const CoefficientRow& coefficients, int mcu_row);
  /// Sets the address of the following rows of pixels.
  void continue_at(std::uint8_t* pixels) { next_row_ = pixels; }

  /// Memory for the samples of a row of the window's blocks: eight rows, `stride` bytes apart. In
  /// each row 24 more bytes may be written before and after the samples.
  struct Samples {
    std::uint8_t* first;
    std::size_t stride;
  };
  /// Returns the memory for the samples of a component's row of blocks, in the next row of MCUs.
  Samples samples_of(int component, int block_row) {
    Plane& plane = planes_[static_cast<std::size_t>(component)];
    return {plane.row(block_row * block_side), plane.stride};
  }
  /// Does what `add` does, but from samples: those of the row of MCUs must all be in the memory of
  /// `samples_of`. Only at a reduction of 1.
  int add_samples(int mcu_row);

 private:
  /// Samples of one component in one row of MCUs. If upper neighbours of the samples are read, also
  /// the last row of samples of the row of MCUs before.
  struct Plane {
    std::vector<std::uint8_t> samples;
    std::size_t stride = 0;
    StepsOfGroup steps;

    std::uint8_t* row(int number) {
      return samples.data() + static_cast<std::size_t>(number + 1) * stride;
    }
  };
  /// Sizes of blocks, MCUs and chroma in the output, at the image's resolution or a lower one.
  struct Grid {
    /// Samples on a side of a decoded block, by component.
    std::array<int, 3> sides{};
    int mcu_width = 0;
    int mcu_height = 0;
    /// Pixels per sample of chroma.
    int across = 1;
    int down = 1;
    int chroma_width = 0;
    int chroma_height = 0;
  };

  void lay_out(const Frame& frame, int reduction);
  McuWindow window_of(const Region& region) const;
  void shape(const Frame& frame);
  void make_samples(const CoefficientRow& coefficients);
  int make_pixels(int mcu_row);
  const std::uint8_t* chroma_row(int component, int mcu_row, int y);
  void keep_last_rows();

  const Frame* frame_ = nullptr;
  std::uint8_t* next_row_ = nullptr;
  Grid grid_;
  McuWindow window_;
  std::array<Plane, 3> planes_;
  std::vector<std::int16_t> sums_;
  std::array<std::vector<std::uint8_t>, 2> chroma_;
};

}  // namespace millrace::jpeg
