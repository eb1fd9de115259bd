// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace millrace {

/// Selects the samples that the device may make (`Recipe::device_share`) by their positions in the
/// order. They are spread evenly: of n consecutive positions, n * `share` are selected, rounded up
/// or down. Immutable.
class DeviceShare {
 public:
  /// `share` is in 0 to 1, and is rounded to a multiple of 2^-32.
  explicit DeviceShare(double share)
      : share_(static_cast<std::uint64_t>(std::llround(share * static_cast<double>(one)))) {}

  /// Returns whether the position is selected: whether floor(share * (position + 1)) is more than
  /// floor(share * position).
  bool has(std::uint64_t position) const { return position * share_ % one + share_ >= one; }

 private:
  // Divides 2^64, so that a product that overflows has the right remainder.
  static constexpr std::uint64_t one = std::uint64_t{1} << 32U;
  std::uint64_t share_;
};

}  // namespace millrace
