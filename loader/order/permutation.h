// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// A key made of another one and a number, with nothing left to see of either.
std::uint64_t derived_key(std::uint64_t key, std::uint64_t number);

/// A keyed permutation of 0 .. size - 1 with O(1) memory: a Feistel network over the smallest
/// even-bit domain that holds them, restricted to them by cycle walking: 1 to 4 passes through the
/// network on average, most if the size is just above a power of 4. Each number comes equally
/// often in each place over the keys. The network makes only even permutations of a domain of 16 or
/// more, so not all orders of a handful of numbers are equally likely; `permute` mends that.
/// Source: Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
class Permutation {
 public:
  Permutation() = default;
  /// `size` > 0.
  Permutation(std::uint64_t size, std::uint64_t key);

  /// The number at a place (< size).
  std::uint64_t operator()(std::uint64_t place) const;

  /// The same for many at once, in their place: each by the permutation beside it. Quicker, since
  /// the passes of several go on side by side.
  static void apply(std::span<const Permutation> permutations, std::span<std::uint64_t> places);

 private:
  template <std::size_t lanes>
  static void pass(const Permutation* const (&permutations)[lanes], std::uint64_t (&values)[lanes]);

  std::uint64_t size_ = 1;
  std::uint64_t key_ = 0;
  std::uint64_t mask_ = 0;
  unsigned half_bits_ = 0;
};

/// Turns places below `size`, at most 64 of them, into the numbers there: all by one permutation.
/// All orders of up to 64 numbers are equally likely over the keys; above, it is a `Permutation`.
void permute(std::uint64_t size, std::uint64_t key, std::span<std::uint64_t> places);

}  // namespace millrace
