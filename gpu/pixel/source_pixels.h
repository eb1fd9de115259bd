// SPDX-License-Identifier: Apache-2.0
//
// The pixels of a crop, made from its samples. Included only by crop_kernel.h. They equal those of
// `CropPixels::at` to the bit. All subsamplings use the same instructions.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>

#include <cstdint>

namespace millrace::kernels {

/// Interpolation of chroma along one axis. On a halved axis the near sample has weight 3 and the
/// far sample weight 1. Otherwise only the near sample counts.
struct ChromaAxis {
  /// 1 if the axis has one sample for two pixels, else 0.
  std::int32_t halved = 0;
  /// Number of the whole image's samples along the axis.
  std::int32_t count = 0;

  __device__ std::int32_t near_one(std::int32_t pixel) const { return pixel >> halved; }
  /// Returns the far sample's index. At the image's edge the far sample is the near one.
  __device__ std::int32_t far_one(std::int32_t pixel) const {
    const std::int32_t beside = near_one(pixel) + (2 * (pixel & 1) - 1) * halved;
    return beside < 0 ? 0 : beside < count ? beside : count - 1;
  }
  __device__ std::int32_t sum(std::int32_t near_value, std::int32_t far_value) const {
    return near_value * (1 + 2 * halved) + far_value * halved;
  }
};

/// Converts a column and a row of the whole image's plane to the offset of the crop's sample.
struct PlaneGrid {
  std::int32_t stride = 0;
  std::int32_t origin = 0;

  __device__ explicit PlaneGrid(const CropHeader::Plane& plane)
      : stride(static_cast<std::int32_t>(plane_stride(plane))),
        origin(plane.first_row * tile_height * stride + plane.first_tile * tile_width) {}
  __device__ std::uint32_t at(std::int32_t column, std::int32_t row) const {
    return static_cast<std::uint32_t>(row * stride + column - origin);
  }
};

/// The pixels of a crop, by their coordinates in it: `exchanged` tells whether the crop's rows and
/// columns are. Both planes of chroma have the same grid.
class SourcePixels {
 public:
  __device__ SourcePixels(const CropHeader& crop, const std::uint8_t* scratch)
      : light_(scratch),
        blue_(scratch + plane_at(crop, 1)),
        red_(scratch + plane_at(crop, 2)),
        light_grid_(crop.planes[0]),
        chroma_grid_(crop.planes[1]),
        across_{crop.across - 1, crop.chroma_width},
        down_{crop.down - 1, crop.chroma_height},
        x_(crop.x),
        y_(crop.y),
        shift_(2 * (across_.halved + down_.halved)),
        grey_(crop.components == 1) {}

  template <bool exchanged>
  __device__ jpeg::Rgb at(std::int32_t crop_x, std::int32_t crop_y) const {
    const std::int32_t x = exchanged ? y_ + crop_y : x_ + crop_x;
    const std::int32_t y = exchanged ? x_ + crop_x : y_ + crop_y;
    const std::int32_t light = light_[light_grid_.at(x, y)];
    if (grey_) {
      const auto value = static_cast<std::uint8_t>(light);
      return {value, value, value};
    }
    const std::int32_t near_row = down_.near_one(y), far_row = down_.far_one(y);
    const std::int32_t near_column = across_.near_one(x), far_column = across_.far_one(x);
    const std::uint32_t near_near = chroma_grid_.at(near_column, near_row);
    const std::uint32_t near_far = chroma_grid_.at(near_column, far_row);
    const std::uint32_t far_near = chroma_grid_.at(far_column, near_row);
    const std::uint32_t far_far = chroma_grid_.at(far_column, far_row);
    // Two pixels that share a sample are rounded differently.
    const std::int32_t half = across_.halved != 0 ? (down_.halved != 0 ? 8 - (x & 1) : 1 + (x & 1))
                                                  : (1 + (y & 1)) * down_.halved;
    const auto smoothed = [&](const std::uint8_t* samples) {
      return (across_.sum(down_.sum(samples[near_near], samples[near_far]),
                          down_.sum(samples[far_near], samples[far_far])) +
              half) >>
             shift_;
    };
    return jpeg::rgb_of(light, smoothed(blue_), smoothed(red_));
  }

 private:
  const std::uint8_t *light_, *blue_, *red_;
  PlaneGrid light_grid_, chroma_grid_;
  ChromaAxis across_, down_;
  std::int32_t x_, y_;
  std::int32_t shift_;
  bool grey_;
};

}  // namespace millrace::kernels
