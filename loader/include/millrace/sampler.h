// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: a `Sampler` is immutable; all its functions may be called by several
// threads at the same time. Copies share the order's lists and tables.

#include <millrace/detail/export.h>
#include <millrace/order.h>
#include <millrace/random.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

// Private types, outside the exported namespace.
namespace millrace {
class AliasTable;
class OrderMode;
class RunSampler;
/// Table of the weights that are in force from an epoch on.
struct EpochTable {
  std::uint64_t first_epoch;
  std::shared_ptr<const AliasTable> table;
};
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

  /// Draws a record that replaces a bad one, with the order's own probabilities: by its weights in
  /// the epoch, or uniformly if it has no weights. An order that is a subset draws from its list.
  std::uint64_t replacement(Random& random, std::uint64_t epoch = 0) const;

  /// Hash that identifies the order in an epoch: XXH3-64 over mode, parameters, lists and number of
  /// records, without the seed. It is the same on any machine, and in all versions of millrace that
  /// draw the same records. It differs between epochs only if the order is `reweighted`.
  std::uint64_t hash(std::uint64_t epoch = 0) const;
  /// Epochs after 0 at which new weights come into force (`Order::reweighted`), ascending.
  std::vector<std::uint64_t> reweighted_epochs() const;

 private:
  friend class RunSampler;

  /// New weights for a `weighted` order, with their table.
  struct PreparedWeights {
    Order::Weights weights;
    std::shared_ptr<const AliasTable> table;
  };
  /// Checks the weights like `Order::reweighted`, and makes their table.
  PreparedWeights prepared(std::vector<double> weights) const;
  /// Returns the sampler of the `reweighted` order. It shares the tables of this one.
  Sampler reweighted(std::uint64_t epoch, const PreparedWeights& prepared) const;
  /// Returns a sampler that draws the same records from `epoch` on, without the weights of earlier
  /// epochs.
  Sampler from_epoch(std::uint64_t epoch) const;

  void offsets_to_records(std::uint64_t epoch, std::span<std::uint64_t> offsets) const;

  Order order_;
  std::uint64_t records_;
  std::uint64_t seed_;
  /// One table for each set of weights of a `weighted` order, ascending by first epoch.
  std::vector<EpochTable> tables_;
  std::shared_ptr<const OrderMode> mode_;
  std::uint64_t epoch_size_;
};

}  // namespace millrace
