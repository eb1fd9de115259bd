// SPDX-License-Identifier: Apache-2.0
#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "coefficients/tile.h"
#include "crops/scan_planes.h"
#include "jpeg/idct.h"

namespace millrace {
namespace {

using coefficients::tile_blocks;

/// Makes a tile's samples: eight rows, `stride` bytes apart. Returns false for a corrupt tile.
bool decode_tile(const std::uint8_t* tile, std::size_t bytes, const jpeg::StepsOfGroup& steps,
                 std::uint8_t* samples, std::size_t stride) {
  if (bytes < coefficients::fixed_tile_bytes || bytes > coefficients::max_tile_bytes) return false;
  std::array<std::uint8_t, coefficients::readable_tile_bytes> readable{};
  std::copy_n(tile, bytes, readable.begin());
  std::array<jpeg::BlockGroup, tile_blocks / jpeg::BlockGroup::blocks> groups;
  coefficients::TileBlocks blocks;
  for (std::size_t n = 0; n < blocks.size(); ++n)
    blocks[n] = groups[n / jpeg::BlockGroup::blocks].values.data() +
                n % jpeg::BlockGroup::blocks * jpeg::block_side;
  if (coefficients::expand_tile_plain(readable.data(), blocks) != bytes) return false;
  for (std::size_t n = 0; n < blocks.size(); ++n)
    jpeg::inverse_transform_plain(blocks[n], steps.values(), samples + n * jpeg::block_side,
                                  stride);
  return true;
}

/// Decodes all planes of a crop to JPEG samples (one byte each) in `scratch`. Returns false if data
/// are corrupt. The samples of corrupt tiles are `grey_sample`.
bool make_planes(const CropHeader& crop, std::uint8_t* scratch) {
  if (crop.scan.segment_count > 0) return crops::make_planes_of_scan(crop, scratch);
  bool sound = true;
  for (std::int32_t component = 0; component < crop.components; ++component) {
    const CropHeader::Plane& plane = crop.planes[component];
    std::array<std::uint16_t, 64> steps{};
    std::copy_n(plane.steps, steps.size(), steps.begin());
    jpeg::StepsOfGroup of_group;
    of_group.set(steps);
    const std::size_t stride = plane_stride(plane);
    std::uint8_t* to = scratch + plane_at(crop, component);
    for (std::int32_t row = 0; row < plane.rows; ++row, to += stride * tile_height) {
      const auto* const ends =
          part_of<std::uint32_t>(crop, part_of<std::uint32_t>(crop, plane.rows_at)[row]);
      const auto* const tiles = reinterpret_cast<const std::uint8_t*>(ends + plane.tiles);
      std::uint32_t begin = 0;
      for (std::int32_t tile = 0; tile < plane.tiles; begin = ends[tile++]) {
        std::uint8_t* const samples = to + tile * tile_width;
        if (decode_tile(tiles + begin, ends[tile] - begin, of_group, samples, stride)) continue;
        sound = false;
        for (std::size_t y = 0; y < tile_height; ++y)
          std::fill_n(samples + y * stride, tile_width, grey_sample);
      }
    }
  }
  return sound;
}

void put(const jpeg::Rgb& pixel, std::uint8_t* to) {
  to[0] = pixel.red;
  to[1] = pixel.green;
  to[2] = pixel.blue;
}
jpeg::Rgb get(const std::uint8_t* from) { return {from[0], from[1], from[2]}; }

/// Resizes a row of the crop's width to `width` pixels.
void resize_row(const CropHeader& crop, const std::uint8_t* row, std::int32_t width,
                std::uint8_t* to) {
  for (std::int32_t x = 0; x < width; ++x) {
    WeightedPixels sum;
    for_each_weight(
        crop, crop.horizontal, x, crop.width,
        [&](std::int32_t from, std::int32_t weight) { sum.add(get(row + 3 * from), weight); });
    put(sum.value(), to + 3 * x);
  }
}

void resize(const CropHeader& crop, const CropPixels& pixels, const CropWork& work,
            std::uint8_t* resized_rows, std::uint8_t* image) {
  std::array<std::uint8_t, 3 * static_cast<std::size_t>(CropHeader::max_width)> row;
  const std::int32_t row_bytes = 3 * work.width;
  if (crop.vertical_first != 0) {
    for (std::int32_t y = 0; y < work.height; ++y) {
      for (std::int32_t x = 0; x < crop.width; ++x) {
        WeightedPixels sum;
        for_each_weight(crop, crop.vertical, y, crop.height,
                        [&](std::int32_t from, std::int32_t weight) {
                          sum.add(pixels.at(crop.x + x, crop.y + from), weight);
                        });
        put(sum.value(), row.data() + 3 * x);
      }
      resize_row(crop, row.data(), work.width, image + std::ptrdiff_t{y} * row_bytes);
    }
    return;
  }
  for (std::int32_t y = 0; y < crop.height; ++y) {
    for (std::int32_t x = 0; x < crop.width; ++x)
      put(pixels.at(crop.x + x, crop.y + y), row.data() + 3 * x);
    resize_row(crop, row.data(), work.width, resized_rows + std::ptrdiff_t{y} * row_bytes);
  }
  for (std::int32_t y = 0; y < work.height; ++y, image += row_bytes)
    for (std::int32_t n = 0; n < row_bytes; ++n) {
      WeightedSum sum;
      for_each_weight(crop, crop.vertical, y, crop.height,
                      [&](std::int32_t from, std::int32_t weight) {
                        sum.add(resized_rows[std::ptrdiff_t{from} * row_bytes + n], weight);
                      });
      image[n] = sum.value();
    }
}

}  // namespace

void CropWork::run_on_host() const {
  const std::size_t image_bytes = image_bytes_of(*this);
  const auto make = [&](std::size_t sample) {
    std::size_t begin = 0;
    for (std::size_t before = 0; before < sample; ++before)
      begin += scratch_units(*this, before) * scratch_unit;
    const std::byte* const input = input_of(*this, sample);
    const CropHeader* const crop = crop_of(*this, sample);
    std::uint8_t* const image = images + sample * image_bytes;
    bool made =
        input != nullptr && begin + scratch_units(*this, sample) * scratch_unit <= scratch_bytes;
    if (made && crop == nullptr) std::memcpy(image, input, image_bytes);
    if (made && crop != nullptr) {
      auto* const of_sample = reinterpret_cast<std::uint8_t*>(scratch) + begin;
      made = make_planes(*crop, of_sample);
      resize(*crop, CropPixels(*crop, of_sample), *this,
             of_sample + plane_at(*crop, crop->components), image);
    }
    if (!made && marks != nullptr) marks[sample] = 1;
  };
  if (workers != nullptr) return workers->share(samples, make);
  for (std::size_t sample = 0; sample < samples; ++sample) make(sample);
}

}  // namespace millrace
