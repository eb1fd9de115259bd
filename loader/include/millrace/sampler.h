// SPDX-License-Identifier: Apache-2.0
// Which record comes at which position: for those who write a loader of their own or look at an
// order; a `Pipeline` has a sampler itself.
//
// Threads: a `Sampler` does not change; any threads may share one.
// Lifetimes: it keeps what it needs of the order that it is made of.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/order.h>
#include <millrace/random.h>

#include <cstdint>
#include <memory>
#include <span>

namespace MILLRACE_API millrace {

class OrderMode;

/// The order of a dataset's records: a pure function from (seed, global position) to a record's
/// index. Positions count the samples of the global sequence through all epochs; position p lies in
/// epoch p / `epoch_size()`. Cheap to copy. All methods may be called from any thread at once.
class Sampler {
 public:
  /// For a dataset of `records`. Throws `Error` (`invalid_argument`) where it is empty or not what
  /// the order is made for. O(1) memory and time, but for the lists that the order has.
  Sampler(const Order& order, std::uint64_t records, std::uint64_t seed);

  /// The record at a global position.
  std::uint64_t operator()(std::uint64_t position) const {
    return at(position / epoch_size_, position % epoch_size_);
  }
  /// The record at `offset` (< `epoch_size()`) of an epoch.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t offset) const;
  /// The records at these positions, of which there are as many; several times as quick as one by
  /// one. Both may be the same memory.
  void draw(std::span<const std::uint64_t> positions, std::span<std::uint64_t> records) const;

  /// Positions of one epoch.
  std::uint64_t epoch_size() const { return epoch_size_; }

  /// A record to take another one's place, drawn by the order's own odds: from its subset, by its
  /// weights, all alike where it has none.
  std::uint64_t replacement(Random& random) const;

  /// What tells orders apart: XXH3-64 over mode, parameters, lists and number of records, not the
  /// seed. The same on any machine and in any version that draws the same.
  std::uint64_t hash() const;

 private:
  void draw_epoch(std::uint64_t epoch, std::span<std::uint64_t> offsets) const;

  Order order_;
  std::uint64_t records_;
  std::shared_ptr<const OrderMode> mode_;
  std::uint64_t epoch_size_;
};

}  // namespace millrace
