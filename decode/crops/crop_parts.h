// SPDX-License-Identifier: Apache-2.0
//
// The header and weights, which all packed crops have.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/crop_packer.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "jpeg/frame.h"

namespace millrace::crops {

/// A range of numbers.
struct Range {
  int first;
  int last;

  int count() const { return last - first + 1; }
  Range divided(int by) const { return {first / by, last / by}; }
};

/// The MCUs that a region needs.
struct McuRanges {
  Range columns;
  Range rows;
};
McuRanges mcus_for(const jpeg::Frame& frame, const Region& region);

/// A crop whose size is being computed: its header and its weights.
struct CropParts {
  static constexpr std::size_t max_bytes = std::size_t{1} << 28U;

  CropHeader header;
  std::size_t all_bytes = 0;
  CropAxis horizontal;
  CropAxis vertical;

  /// Begins a crop with its weights. Sets all numbers of the header that do not depend on other
  /// parts. Returns false if the crop is too wide, or needs more than `max_scratch` bytes of
  /// scratch.
  bool begin(const jpeg::Frame& frame, const Crop& crop, std::size_t max_scratch);
  /// Reserves `bytes` bytes for the next part and returns its offset. In crops of more than
  /// `max_bytes` the offsets are wrong.
  std::uint32_t take(std::size_t bytes) {
    const auto offset = static_cast<std::uint32_t>(all_bytes);
    all_bytes += (bytes + 3) / 4 * 4;
    header.bytes = static_cast<std::uint32_t>(all_bytes);
    return offset;
  }
  /// Returns the bytes of all parts; 0 if they are more than `max_bytes`.
  std::size_t bytes() const { return all_bytes <= max_bytes ? all_bytes : 0; }
  std::size_t scratch_bytes() const;
  /// Copies the header and the weights to the packed crop that begins at `to`.
  void put(std::byte* to) const;
};

/// Copies numbers to an offset of the packed crop.
template <typename Number>
void put(std::span<const Number> numbers, std::byte* crop, std::uint32_t offset) {
  if (!numbers.empty()) std::memcpy(crop + offset, numbers.data(), numbers.size_bytes());
}

}  // namespace millrace::crops
