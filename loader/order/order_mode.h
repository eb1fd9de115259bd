// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/order.h>
#include <millrace/random.h>
#include <millrace/sampler.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// A method of drawing numbers below a count: a pure function of (epoch, offset).
class OrderMode {
 public:
  /// Maximal number of offsets per draw; arrays of this size are allocated on the stack.
  static constexpr std::size_t most = 64;

  virtual ~OrderMode() = default;
  virtual std::uint64_t epoch_size() const = 0;
  /// Replaces each offset in the epoch by the number drawn at that offset. `offsets` has at most
  /// `most` elements.
  virtual void draw(std::uint64_t epoch, std::span<std::uint64_t> offsets) const = 0;
  /// Draws a number with the mode's own probabilities in an epoch.
  virtual std::uint64_t replacement(std::uint64_t epoch, Random& random) const = 0;
};

std::shared_ptr<const OrderMode> sequential_mode(std::uint64_t count);
std::shared_ptr<const OrderMode> shuffled_mode(std::uint64_t count, std::uint64_t seed);
std::shared_ptr<const OrderMode> block_mode(std::uint64_t count, std::uint64_t seed,
                                            Order::Blocks blocks);

/// Makes the table from which numbers are drawn by their weights.
std::shared_ptr<const AliasTable> alias_table(std::span<const double> weights);
/// `tables` are sorted by epoch; the first table applies from epoch 0.
std::shared_ptr<const OrderMode> weighted_mode(std::vector<EpochTable> tables,
                                               std::uint64_t epoch_size, std::uint64_t seed);

/// Adds an element, which applies from its `first_epoch` up to that of the next element. Replaces
/// an element with the same `first_epoch`.
template <typename Element>
void set_from_epoch(std::vector<Element>& by_epoch, Element element) {
  auto place = std::ranges::lower_bound(by_epoch, element.first_epoch, {}, &Element::first_epoch);
  if (place != by_epoch.end() && place->first_epoch == element.first_epoch)
    *place = std::move(element);
  else
    by_epoch.insert(place, std::move(element));
}

/// Returns the index of the element that applies in an epoch.
template <typename Element>
std::size_t index_in_epoch(const std::vector<Element>& by_epoch, std::uint64_t epoch) {
  std::size_t index = by_epoch.size() - 1;
  while (by_epoch[index].first_epoch > epoch) --index;
  return index;
}

/// Throws `Error` (`invalid_argument`) if a weight is so small that its part would never be drawn.
std::shared_ptr<const OrderMode> mixed_mode(std::span<const Order::Part> parts,
                                            std::uint64_t epoch_size, std::uint64_t seed);

/// `indices[n]` is the record of number n; null = record n. `lengths` has one value for each
/// record.
std::shared_ptr<const OrderMode> bucketed_mode(
    std::shared_ptr<const std::vector<std::uint32_t>> lengths,
    std::shared_ptr<const std::vector<std::uint64_t>> indices, Order::Buckets buckets,
    std::uint64_t seed);

/// Converts weights to integers in the same proportion, since integer arithmetic gives the same
/// results on every machine. Only 0 becomes 0. The sum is below 2^63.
std::vector<std::uint64_t> integer_weights(std::span<const double> weights);
/// Formats a weight for messages, short and exact: 0.1, 1e-09.
std::string weight_text(double weight);

}  // namespace millrace
