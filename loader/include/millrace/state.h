// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// Where a run is: the whole of its iteration state, since order is a pure function of seed and position.
struct State {
  std::uint64_t seed = 0;
  /// Samples of the global sequence (all ranks, all epochs) before the next batch. An epoch is as many positions as the dataset has
  /// records, also where its last batch is dropped.
  std::uint64_t position = 0;

  friend bool operator==(const State&, const State&) = default;
};

}  // namespace millrace
