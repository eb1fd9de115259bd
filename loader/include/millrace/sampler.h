// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `Sampler` does not change once it is made; all its functions may be
// called from any thread at once. Copies share the order's lists and tables.

#include <millrace/detail/export.h>
#include <millrace/order.h>
#include <millrace/random.h>

#include <cstdint>
#include <memory>
#include <span>

// Private, so outside of what is shown.
namespace millrace {
class OrderMode;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// The order of a dataset's records: a pure function from (seed, global position) to a record's
/// index. Positions count the samples of the global sequence through all epochs; position p lies in
/// epoch p / `epoch_size()`. Cheap to copy.
class Sampler {
 public:
  /// For a dataset of `records`. Throws `Error` (`invalid_argument`) if it is empty or not what the
  /// order is made for. It takes O(1) memory and time, but for the lists that the order has
  /// and the windows of `Order::bucketed`.
  Sampler(const Order& order, std::uint64_t records, std::uint64_t seed);

  /// The record at a global position.
  std::uint64_t operator()(std::uint64_t position) const {
    return at(position / epoch_size_, position % epoch_size_);
  }
  /// The record at `offset` (< `epoch_size()`) of an epoch.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t offset) const;
  /// Writes the record at `positions[n]` to `records[n]` for each n. `records` has as many elements
  /// as `positions` and may be the same memory. Several times as quick as one call for each.
  void draw(std::span<const std::uint64_t> positions, std::span<std::uint64_t> records) const;

  /// Positions of one epoch.
  std::uint64_t epoch_size() const { return epoch_size_; }

  /// A record to take another one's place, drawn by the order's own odds: from its subset, by its
  /// weights, and all alike if it has none.
  std::uint64_t replacement(Random& random) const;

  /// A number that tells orders apart: XXH3-64 over mode, parameters, lists and number of records,
  /// not the seed. It is the same on any machine and in any version that draws the same.
  std::uint64_t hash() const;

 private:
  void draw_epoch(std::uint64_t epoch, std::span<std::uint64_t> offsets) const;

  Order order_;
  std::uint64_t records_;
  std::shared_ptr<const OrderMode> mode_;
  std::uint64_t epoch_size_;
};

}  // namespace millrace
