// SPDX-License-Identifier: Apache-2.0
//
// The inverse transform of tiles, straight from `TileBytes`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coefficients/samples_vnni.h"
#include "coefficients/tile.h"

namespace millrace::coefficients {

/// A component's quantisation steps, for the transform of tiles.
struct StepsOfBytes {
  void set(const std::array<std::uint16_t, block_values>& all);

  /// The steps, row by row.
  std::array<std::uint16_t, block_values> steps;
  /// The steps times 2^7, in the order of the vectors for whole blocks, and for those with only the
  /// lowest 4 x 4 coefficients.
  alignas(16) std::array<std::int16_t, block_values> pairs;
  alignas(16) std::array<std::int16_t, 16> corner;
  StepsForVnni for_vnni;
};

/// Functions for the instruction set that Highway chooses. Null for one without vectors.
struct TileTransform {
  BytesExpansion expand = nullptr;
  /// Transforms the tile's groups of four blocks, from `first` to before `end` (at most 2), to
  /// samples: eight rows, `stride` bytes apart, of 32 samples for each group. The samples are those
  /// of `jpeg::inverse_transform`, if no sum exceeds 16 bits. For other coefficients they may
  /// differ.
  void (*run)(const TileBytes& tile, std::size_t first, std::size_t end, const StepsOfBytes& steps,
              std::uint8_t* samples, std::size_t stride) = nullptr;
};
TileTransform tile_transform();

}  // namespace millrace::coefficients
