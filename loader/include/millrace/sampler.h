// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `Sampler` is immutable; all its functions may be called from any thread
// at once. Copies share the order's lists and tables.

#include <millrace/detail/export.h>
#include <millrace/order.h>
#include <millrace/random.h>

#include <cstdint>
#include <memory>
#include <span>

// Private types, outside the exported namespace.
namespace millrace {
class OrderMode;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// The order of a dataset's records: a pure function from (seed, global position) to a record
/// index. Positions count the samples of the global sequence through all epochs. Position p lies in
/// epoch p / `epoch_size()`. Cheap to copy.
class Sampler {
 public:
  /// Makes a sampler for a dataset of `records` records. Throws `Error` (`invalid_argument`) if the
  /// dataset is empty or does not match the order. It takes O(1) memory and time, except for the
  /// order's lists and the windows of `Order::bucketed`.
  Sampler(const Order& order, std::uint64_t records, std::uint64_t seed);

  /// The record at a global position.
  std::uint64_t operator()(std::uint64_t position) const {
    return at(position / epoch_size_, position % epoch_size_);
  }
  /// The record at `offset` (< `epoch_size()`) of an epoch.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t offset) const;
  /// Writes the record at `positions[n]` to `records[n]` for each n. `records` has as many elements
  /// as `positions` and may be the same memory. Several times faster than one call for each
  /// position.
  void draw(std::span<const std::uint64_t> positions, std::span<std::uint64_t> records) const;

  /// Number of positions in an epoch.
  std::uint64_t epoch_size() const { return epoch_size_; }

  /// Draws a record that replaces a bad one, with the order's own probabilities: from its subset,
  /// by its weights, or uniformly if it has no weights.
  std::uint64_t replacement(Random& random) const;

  /// Hash that identifies the order: XXH3-64 over mode, parameters, lists and number of records,
  /// without the seed. It is the same on any machine, and in all versions that draw the same
  /// records.
  std::uint64_t hash() const;

 private:
  void draw_epoch(std::uint64_t epoch, std::span<std::uint64_t> offsets) const;

  Order order_;
  std::uint64_t records_;
  std::shared_ptr<const OrderMode> mode_;
  std::uint64_t epoch_size_;
};

}  // namespace millrace
