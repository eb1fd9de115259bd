// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// The order of records: a pure function from (seed, global position) to a record index, with O(1) memory and start-up for any
/// dataset size. Position p lies in epoch p / size; each epoch is a permutation of its own, in which every record comes exactly once.
/// All methods may be called from any thread at once. Each record comes equally often in each place; of a handful of records, not all
/// orders are equally likely.
///
/// The permutation is a Feistel network over the smallest even-bit domain that holds the records, restricted to them by cycle
/// walking. Source: Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
class Sampler {
 public:
  /// `size` records (> 0; else throws `Error`, `invalid_argument`); with `shuffle` off the order is 0, 1, 2 ... in every epoch.
  Sampler(std::uint64_t size, std::uint64_t seed, bool shuffle = true);

  /// The record at a global position.
  std::uint64_t operator()(std::uint64_t position) const { return at(position / size_, position % size_); }
  /// The record at `offset` (< size) of an epoch.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t offset) const;

  std::uint64_t size() const { return size_; }
  std::uint64_t hash() const { return size_ * 2 + (shuffle_ ? 1 : 0); }

 private:
  std::uint64_t size_;
  std::uint64_t seed_;
  bool shuffle_;
  unsigned half_bits_;
};

}  // namespace millrace
