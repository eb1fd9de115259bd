// SPDX-License-Identifier: Apache-2.0
#include "crops/scan_planes.h"

#include <millrace/detail/crop_layout.h>
#include <millrace/detail/scan_decoding.h>

#include <algorithm>
#include <array>

#include "jpeg/coefficients.h"
#include "jpeg/idct.h"

namespace millrace::crops {
namespace {

/// The scan of a crop, and the places of its samples.
struct ScanSource {
  const CropHeader& crop;
  jpeg::ScanTables tables;
  std::array<BlockPlace, jpeg::ScanTables::max_blocks> places{};
  std::array<jpeg::StepsOfGroup, 3> steps;

  explicit ScanSource(const CropHeader& of) : crop(of) {
    tables.make(crop, part_of<CropScan::Code>(crop, crop.scan.codes_at), 0, 1);
    for (std::uint32_t block = 0; block < tables.layout.blocks; ++block)
      places[block] = block_place(crop, static_cast<std::int32_t>(block));
    for (std::int32_t component = 0; component < crop.components; ++component) {
      std::array<std::uint16_t, 64> values{};
      std::copy_n(crop.planes[component].steps, values.size(), values.begin());
      steps[static_cast<std::size_t>(component)].set(values);
    }
  }

  /// Makes the samples of an MCU's blocks.
  void make_samples(const std::array<jpeg::BlockGroup, jpeg::ScanTables::max_blocks>& blocks,
                    std::int32_t mcu_x, std::int32_t mcu_y, std::uint8_t* scratch) const {
    for (std::uint32_t block = 0; block < tables.layout.blocks; ++block) {
      const BlockPlace& place = places[block];
      std::size_t offset = 0;
      if (place.find(mcu_x, mcu_y, offset))
        jpeg::inverse_transform_plain(blocks[block].values.data(),
                                      steps[tables.layout.component_of(block)].values(),
                                      scratch + offset, place.stride);
    }
  }

  /// Makes the samples of a segment. The blocks after a bad code are grey.
  bool decode(const CropScan::Segment& segment, std::uint8_t* scratch) const {
    jpeg::WordBits bits(part_of<std::uint32_t>(crop, crop.scan.words_at), crop.scan.word_count,
                        segment.begin_bit);
    std::array<std::uint16_t, 3> predictors;
    std::ranges::copy(segment.begin_predictors, predictors.begin());
    bool sound = true;
    for (std::int32_t n = 0; n < segment.mcus; ++n) {
      std::array<jpeg::BlockGroup, jpeg::ScanTables::max_blocks> blocks{};
      sound = sound && jpeg::decode_mcu(tables, bits, predictors.data(),
                                        [&](bool is_stored, std::uint32_t block, std::uint32_t,
                                            std::uint32_t place, std::int16_t value) {
                                          if (is_stored)
                                            blocks[block].values[jpeg::zigzag_offsets[place]] =
                                                value;
                                        });
      make_samples(blocks, segment.mcu_x + n, segment.mcu_y, scratch);
    }
    return sound && jpeg::ends_right(segment, bits, predictors.data());
  }
};

}  // namespace

bool make_planes_of_scan(const CropHeader& crop, std::uint8_t* scratch) {
  const ScanSource source(crop);
  const auto* const segments = part_of<CropScan::Segment>(crop, crop.scan.segments_at);
  bool sound = true;
  for (std::int32_t n = 0; n < crop.scan.segment_count; ++n)
    sound = source.decode(segments[n], scratch) && sound;
  return sound;
}

}  // namespace millrace::crops
