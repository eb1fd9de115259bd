// SPDX-License-Identifier: Apache-2.0
#include "crops/crop_parts.h"

#include <millrace/detail/crop_layout.h>

#include <algorithm>
#include <new>
#include <utility>

namespace millrace::crops {
namespace {

/// Returns the samples along an axis that `count` pixels need, from pixel `begin` on. Smoothed
/// chroma needs a neighbour on each side.
Range samples_for(int begin, int count, int pixels_per_sample, int samples) {
  const int beside = pixels_per_sample > 1 ? 1 : 0;
  return {std::max(begin / pixels_per_sample - beside, 0),
          std::min((begin + count - 1) / pixels_per_sample + beside, samples - 1)};
}

int divided_up(int number, int by) { return (number + by - 1) / by; }

}  // namespace

McuRanges mcus_for(const jpeg::Frame& frame, const Region& region) {
  // An MCU has one block of each component of chroma. A grey MCU has one block.
  const jpeg::Component& light = frame.components.front();
  const int chroma_width = divided_up(frame.width, light.across);
  const int chroma_height = divided_up(frame.height, light.down);
  return {
      samples_for(region.x, region.width, light.across, chroma_width).divided(jpeg::block_side),
      samples_for(region.y, region.height, light.down, chroma_height).divided(jpeg::block_side)};
}

bool CropParts::begin(const jpeg::Frame& frame, const Crop& crop, std::size_t max_scratch) {
  const jpeg::Component& light = frame.components.front();
  const Region& region = crop.region;
  header = {};
  all_bytes = sizeof header;
  header.components = frame.component_count;
  header.across = light.across;
  header.down = light.down;
  header.chroma_width = divided_up(frame.width, light.across);
  header.chroma_height = divided_up(frame.height, light.down);
  header.exchanged = crop.exchanged ? 1 : 0;
  header.x = crop.exchanged ? region.y : region.x;
  header.y = crop.exchanged ? region.x : region.y;
  header.width = crop.exchanged ? region.height : region.width;
  header.height = crop.exchanged ? region.width : region.height;
  header.vertical_first = crop.vertical_first ? 1 : 0;
  for (int number = 0; number < frame.component_count; ++number) {
    const bool chroma = number > 0;
    const Range columns = samples_for(region.x, region.width, chroma ? light.across : 1,
                                      chroma ? header.chroma_width : frame.width)
                              .divided(tile_width);
    const Range rows = samples_for(region.y, region.height, chroma ? light.down : 1,
                                   chroma ? header.chroma_height : frame.height)
                           .divided(tile_height);
    CropHeader::Plane& plane = header.planes[number];
    plane.first_tile = columns.first;
    plane.tiles = columns.count();
    plane.first_row = rows.first;
    plane.rows = rows.count();
    const auto& steps = frame.components[static_cast<std::size_t>(number)].steps;
    std::ranges::transform(steps, plane.steps,
                           [](std::uint16_t step) { return static_cast<std::uint8_t>(step); });
  }
  const auto width = static_cast<std::int32_t>(crop.horizontal.begins.size());
  if (header.width > CropHeader::max_width || crop_scratch_bytes(header, width) > max_scratch)
    return false;
  const auto take_axis = [&](const CropAxis& axis) -> CropHeader::Axis {
    return {take(axis.begins.size_bytes()), take(axis.weights.size_bytes()), axis.taps,
            axis.stride};
  };
  horizontal = crop.horizontal;
  vertical = crop.vertical;
  header.horizontal = take_axis(horizontal);
  header.vertical = take_axis(vertical);
  return true;
}

std::size_t CropParts::scratch_bytes() const {
  return crop_scratch_bytes(header, static_cast<std::int32_t>(horizontal.begins.size()));
}

void CropParts::put(std::byte* to) const {
  new (to) CropHeader(header);
  for (const auto& [axis, place] :
       {std::pair(&horizontal, &header.horizontal), std::pair(&vertical, &header.vertical)}) {
    crops::put(axis->begins, to, place->begins_at);
    crops::put(axis->weights, to, place->weights_at);
  }
}

}  // namespace millrace::crops
