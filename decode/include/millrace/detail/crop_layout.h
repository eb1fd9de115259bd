// SPDX-License-Identifier: Apache-2.0
//
// Memory layout of a packed crop and of its scratch, for host code and CUDA kernels. For millrace's
// own folders; not installed.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/block_arithmetic.h>

#include <cstddef>
#include <cstdint>

namespace millrace {

/// Size of a tile in samples, which are bytes.
inline constexpr std::int32_t tile_width = 64;
inline constexpr std::int32_t tile_height = 8;
/// Value of all samples of a corrupt tile.
inline constexpr std::uint8_t grey_sample = 128;

MILLRACE_HOST_DEVICE inline std::size_t image_bytes_of(const CropWork& work) {
  return 3 * static_cast<std::size_t>(work.height) * static_cast<std::size_t>(work.width);
}

/// Returns a sample's input; null if it has none.
MILLRACE_HOST_DEVICE inline const std::byte* input_of(const CropWork& work, std::size_t sample) {
  const std::uint32_t offset = work.offsets[sample];
  return offset == CropWork::no_input ? nullptr
                                      : work.inputs + std::size_t{offset} * CropWork::input_unit;
}
/// Returns a sample's packed crop; null if its input is not a packed crop.
MILLRACE_HOST_DEVICE inline const CropHeader* crop_of(const CropWork& work, std::size_t sample) {
  return work.packed[sample] == 0 ? nullptr
                                  : reinterpret_cast<const CropHeader*>(input_of(work, sample));
}

template <typename Part>
MILLRACE_HOST_DEVICE const Part* part_of(const CropHeader& crop, std::uint32_t offset) {
  return reinterpret_cast<const Part*>(reinterpret_cast<const std::uint8_t*>(&crop) + offset);
}

MILLRACE_HOST_DEVICE inline std::size_t plane_stride(const CropHeader::Plane& plane) {
  return static_cast<std::size_t>(plane.tiles) * tile_width;
}

/// Returns the offset of a component's samples in the scratch of a sample. For `component` =
/// `crop.components` it is the offset of the rows between the two resize passes.
MILLRACE_HOST_DEVICE inline std::size_t plane_at(const CropHeader& crop, std::int32_t component) {
  const auto bytes = [&](std::int32_t n) {
    return n < component ? plane_stride(crop.planes[n]) *
                               static_cast<std::size_t>(crop.planes[n].rows) * tile_height
                         : 0;
  };
  return bytes(0) + bytes(1) + bytes(2);
}

/// Unit in bytes: the scratch of each sample begins at a multiple of it.
inline constexpr std::size_t scratch_unit = 256;

/// Returns the bytes of scratch for a crop that is resized to a width of `width` pixels.
MILLRACE_HOST_DEVICE inline std::size_t crop_scratch_bytes(const CropHeader& crop,
                                                           std::int32_t width) {
  const std::size_t between = crop.vertical_first != 0 ? 0
                                                       : static_cast<std::size_t>(crop.height) * 3 *
                                                             static_cast<std::size_t>(width);
  return plane_at(crop, crop.components) + between;
}

/// Returns the number of scratch units that a sample needs.
MILLRACE_HOST_DEVICE inline std::uint32_t scratch_units(const CropWork& work, std::size_t sample) {
  const CropHeader* const crop = crop_of(work, sample);
  if (crop == nullptr) return 0;
  return static_cast<std::uint32_t>((crop_scratch_bytes(*crop, work.width) + scratch_unit - 1) /
                                    scratch_unit);
}

/// Location in the scratch of one block of an MCU, for crops that have a JPEG's scan.
struct BlockPlace {
  /// Offset of the component's samples in the scratch.
  std::size_t at;
  std::size_t stride;
  /// Distance between adjacent MCUs (`across`, `down`), and position of the block of the image's
  /// first MCU (`x`, `y`). The unit is a block of the component; positions count from the first
  /// block in the scratch.
  std::int32_t across;
  std::int32_t down;
  std::int32_t x;
  std::int32_t y;
  /// Size of the component's part in the scratch, in blocks.
  std::int32_t columns;
  std::int32_t rows;

  /// Returns whether the block of this MCU is in the scratch. Sets `offset` to its samples' offset.
  MILLRACE_HOST_DEVICE bool find(std::int32_t mcu_x, std::int32_t mcu_y,
                                 std::size_t& offset) const {
    const std::int32_t column = mcu_x * across + x;
    const std::int32_t row = mcu_y * down + y;
    offset = at + static_cast<std::size_t>(row) * tile_height * stride +
             static_cast<std::size_t>(column) * tile_height;
    return column >= 0 && column < columns && row >= 0 && row < rows;
  }
};

/// Returns the location of block number `block` of an MCU.
MILLRACE_HOST_DEVICE inline BlockPlace block_place(const CropHeader& crop, std::int32_t block) {
  const std::int32_t light_blocks = crop.across * crop.down;
  const bool chroma = block >= light_blocks;
  const std::int32_t component = chroma ? block - light_blocks + 1 : 0;
  const CropHeader::Plane& plane = crop.planes[component];
  const std::int32_t across = chroma ? 1 : crop.across;
  const std::int32_t first_column = plane.first_tile * (tile_width / tile_height);
  return {.at = plane_at(crop, component),
          .stride = plane_stride(plane),
          .across = across,
          .down = chroma ? 1 : crop.down,
          .x = (chroma ? 0 : block % across) - first_column,
          .y = (chroma ? 0 : block / across) - plane.first_row,
          .columns = plane.tiles * (tile_width / tile_height),
          .rows = plane.rows};
}

/// Converts the samples of a crop to pixels. `at` takes a pixel's position in the whole image, with
/// rows and columns exchanged if those of the crop are.
struct CropPixels {
  jpeg::SamplePlane planes[3];
  jpeg::ChromaGrid grid;
  bool grey = false;
  bool exchanged = false;

  MILLRACE_HOST_DEVICE CropPixels(const CropHeader& crop, const std::uint8_t* scratch)
      : grid{crop.across, crop.down, crop.chroma_width, crop.chroma_height},
        grey(crop.components == 1),
        exchanged(crop.exchanged != 0) {
    for (std::int32_t n = 0; n < crop.components; ++n) {
      const CropHeader::Plane& plane = crop.planes[n];
      planes[n] = {scratch + plane_at(crop, n), plane_stride(plane), plane.first_tile * tile_width,
                   plane.first_row * tile_height};
    }
  }
  MILLRACE_HOST_DEVICE jpeg::Rgb at(int column, int row) const {
    const int x = exchanged ? row : column;
    const int y = exchanged ? column : row;
    const int light = planes[0].at(x, y);
    if (grey) {
      const auto value = static_cast<std::uint8_t>(light);
      return {value, value, value};
    }
    return jpeg::rgb_of(light, jpeg::smoothed_chroma(planes[1], grid, x, y),
                        jpeg::smoothed_chroma(planes[2], grid, x, y));
  }
};

/// A weighted sum of 8-bit values, in Pillow's fixed-point arithmetic.
struct WeightedSum {
  std::int32_t sum = 1 << 21;

  MILLRACE_HOST_DEVICE void add(std::uint8_t value, std::int32_t weight) { sum += value * weight; }
  MILLRACE_HOST_DEVICE std::uint8_t value() const { return jpeg::clamped(sum >> 22); }
};

/// A weighted sum of pixels.
struct WeightedPixels {
  WeightedSum red, green, blue;

  MILLRACE_HOST_DEVICE void add(const jpeg::Rgb& pixel, std::int32_t weight) {
    red.add(pixel.red, weight);
    green.add(pixel.green, weight);
    blue.add(pixel.blue, weight);
  }
  MILLRACE_HOST_DEVICE jpeg::Rgb value() const {
    return {red.value(), green.value(), blue.value()};
  }
};

/// Calls `take` for each weight of output pixel `pixel` along an axis, with the position of the
/// source pixel and the weight. Skips positions from `count` on.
template <typename Take>
MILLRACE_HOST_DEVICE void for_each_weight(const CropHeader& crop, const CropHeader::Axis& axis,
                                          std::int32_t pixel, std::int32_t count,
                                          const Take& take) {
  const std::int32_t begin = part_of<std::int32_t>(crop, axis.begins_at)[pixel];
  const std::int32_t* const weights = part_of<std::int32_t>(crop, axis.weights_at) +
                                      static_cast<std::ptrdiff_t>(pixel) * axis.stride;
  const std::int32_t left = count - begin;
  for (std::int32_t tap = 0; tap < (axis.taps < left ? axis.taps : left); ++tap)
    take(begin + tap, weights[tap]);
}

}  // namespace millrace
