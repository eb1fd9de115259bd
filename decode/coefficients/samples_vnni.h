// SPDX-License-Identifier: Apache-2.0
//
// The inverse transform of tiles with AVX-512 VBMI2 and VNNI, straight from `TileBytes`. Call it
// only on processors that have them (`jpeg::has_vbmi2`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

namespace millrace::coefficients {

/// A component's quantisation steps, in the orders of this transform's vectors.
class StepsForVnni {
 public:
  void set(const std::array<std::uint16_t, block_values>& steps);

 private:
  friend class VnniTransform;

  /// Eight steps: those of four pairs of coefficients.
  using Pairs = std::array<std::int16_t, 8>;

  /// For each pair of rows, the first four columns and the last four ones.
  alignas(64) std::array<std::array<Pairs, 2>, 4> whole_;
  /// The two pairs of rows of the lowest 4 x 4 coefficients.
  std::array<Pairs, 2> corner_;
  /// The steps themselves, row by row.
  std::array<std::uint16_t, block_values> steps_;
};

/// Does what `TileTransform::run` does.
void transform_tile_vnni(const TileBytes& tile, std::size_t first, std::size_t end,
                         const StepsForVnni& steps, std::uint8_t* samples, std::size_t stride);

}  // namespace millrace::coefficients
