// SPDX-License-Identifier: Apache-2.0
//
// Divisions that kernels make for each element. Included only by the kernels' headers.
#pragma once

#include <millrace/detail/pixel_arithmetic.h>

#include <cstdint>

namespace millrace::kernels {

/// Divides numbers below 2^31 by a divisor that is known before the launch. Uses a multiplication
/// and a shift. Source: Granlund and Montgomery, "Division by invariant integers using
/// multiplication", 1994.
struct Divisor {
  std::uint32_t multiplier = 0;
  std::uint32_t shift = 0;

  Divisor() = default;
  explicit Divisor(std::uint32_t divisor) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    multiplier =
        static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - divisor) << 32U) / divisor + 1);
  }
  MILLRACE_HOST_DEVICE std::uint32_t quotient(std::uint32_t number) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{number} * multiplier) >> 32U);
    return (high + number) >> shift;
  }
};

}  // namespace millrace::kernels
