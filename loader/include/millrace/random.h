// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: a `Random` is a small value without shared state. Two threads must not use
// one object at once; each thread makes its own.

#include <array>
#include <cstdint>

namespace MILLRACE_API millrace {

/// Random numbers for one sample: a pure function of (seed, position, substream) and of the number
/// of draws before, the same on any thread and machine. In another epoch a record has another
/// position, so it gets new numbers. The generator is counter-based (Philox4x32-10) and meets the
/// requirements of a uniform random bit generator.
class Random {
 public:
  using result_type = std::uint32_t;

  /// `substream` separates independent uses at one position. 0 is for the transform. 1 to 16 choose
  /// the record that replaces a bad one (`BadRecords::replace`), one for each attempt. 17 is for
  /// `Order::weighted`, 18 for batch transforms, and 19 for the shuffle windows of
  /// `one_pass_dataset`.
  Random(std::uint64_t seed, std::uint64_t position, std::uint32_t substream = 0);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT32_MAX; }
  /// 32 random bits.
  result_type operator()();
  /// 64 random bits.
  std::uint64_t bits64();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform();
  /// Uniform in [low, high). Product and sum are rounded separately, whatever compiler options the
  /// caller uses.
  double uniform(double low, double high);
  /// Uniform in [0, bound), without bias; `bound` > 0. Source: Lemire, "Fast random integer
  /// generation in an interval", 2019.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
};

}  // namespace millrace
