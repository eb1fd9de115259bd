// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// Derives a key from another key and a number. The result alone reveals neither of them.
std::uint64_t derived_key(std::uint64_t key, std::uint64_t number);

/// A keyed permutation of 0 .. size - 1 with O(1) memory: a Feistel network with cycle walking. The
/// network's domain is the smallest one with an even number of bits that contains the numbers.
/// Cycle walking restricts the domain to the numbers. It takes 1 to 4 passes through the network on
/// average: 4 if the size is just above a power of 4. Over all keys, each number is equally likely
/// at each place. The network makes only even permutations of a domain of 16 or more numbers. So
/// for small sizes not all orders are equally likely; `permute` corrects this. Source: Black,
/// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
class Permutation {
 public:
  Permutation() = default;
  /// `size` > 0.
  Permutation(std::uint64_t size, std::uint64_t key);

  /// Returns the number at a place (< size).
  std::uint64_t operator()(std::uint64_t place) const;

  /// Replaces each place by the number at that place; `permutations[n]` applies to `places[n]`.
  /// Faster than single calls, because the passes of several places overlap.
  static void apply(std::span<const Permutation> permutations, std::span<std::uint64_t> places);

 private:
  template <std::size_t lanes>
  static void pass(const Permutation* const (&permutations)[lanes], std::uint64_t (&values)[lanes]);

  std::uint64_t size_ = 1;
  std::uint64_t key_ = 0;
  std::uint64_t mask_ = 0;
  unsigned half_bits_ = 0;
};

/// Replaces up to 64 places below `size` by the numbers at these places, with one permutation for
/// all. For sizes up to 64, all orders are equally likely over the keys. For larger sizes it uses a
/// `Permutation`.
void permute(std::uint64_t size, std::uint64_t key, std::span<std::uint64_t> places);

}  // namespace millrace
