// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads and lifetimes: an `Order` is a value that does not change once it is made and that shares
// its lists with its copies; it may be used from any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace millrace {

/// The order in which a run takes a dataset's records, as data that is cheap to copy. A `Sampler`
/// turns it into records. Each mode says which positions are an epoch. All functions throw `Error`
/// (`invalid_argument`), which names the value and its place; what contradicts the dataset's size is
/// found by `Sampler`.
class Order {
 public:
  struct Blocks {
    /// Consecutive records per block; the dataset's last block may be shorter.
    std::uint64_t block_records = 1024;
    /// How many blocks have their records shuffled among each other.
    std::uint64_t window_blocks = 16;
  };
  struct Part {
    /// Records of this part, which follow those of the parts before.
    std::uint64_t records = 0;
    /// Its share of the samples is this by the sum of all; finite, not negative, not all 0.
    double weight = 1;
  };

  /// Full shuffle. An epoch has every record exactly once, in an order of its own. O(1) memory.
  Order() = default;
  static Order shuffled() { return {}; }

  /// 0, 1, 2 ..., the same in every epoch.
  static Order sequential();

  /// Near-sequential reads, for cold or network storage: blocks of consecutive records come in
  /// random order, and records are shuffled among `window_blocks` blocks that follow each other in
  /// it, before the next ones begin. An epoch has every record exactly once, in an order of its
  /// own. O(1) memory.
  static Order blocks(Blocks blocks);
  static Order blocks() { return blocks(Blocks()); }

  /// Drawn with replacement, each record with the odds of its weight: finite, not negative, not all
  /// 0. The odds are those of integers in proportion to the weights, of which the largest is 2^62
  /// by the number of records; no positive weight becomes 0. An epoch is `epoch_size` draws, 0 = as
  /// many as there are weights; each draw of a run is new. O(weights) memory: 24 bytes each, and
  /// about twice that while a `Sampler` is made. Source: Walker, "An efficient method for
  /// generating discrete random variables with general distributions", 1977; Vose, "A linear
  /// algorithm for generating random numbers with a given distribution", 1991.
  static Order weighted(std::vector<double> weights, std::uint64_t epoch_size = 0);

  /// For a dataset of several parts (`concat_datasets`): each part has its share of the samples,
  /// and is shuffled by itself: it goes through all its records, and then again in another order.
  /// Shares are exact in each run of 2^10, 2^12 ... or 2^24 positions, the smallest that brings
  /// each within 1 % of its weight; at 2^24 rare parts are rounded to whole samples. Whose turn it
  /// is within a run is random, and so is the order of a part's draws there; so where a pass ends
  /// in a run, the next one's first draws come among its last. A part's passes go on from epoch to
  /// epoch; an epoch is `epoch_size` positions, 0 = as many as all parts have records. O(parts)
  /// memory.
  static Order mixed(std::vector<Part> parts, std::uint64_t epoch_size = 0);

  /// The same over some records: what is ordered is this list, and its length is what the mode
  /// takes for the number of records. A record that is listed twice comes twice. The indices of a
  /// subset's subset are places in its list. It takes O(indices) memory.
  Order subset(std::vector<std::uint64_t> indices) const;
  /// The subset of those of the first `records` indices for which `keep` is true.
  Order filtered(std::uint64_t records, const std::function<bool(std::uint64_t)>& keep) const;

  /// Repeated augmentation: each record `times` times in a row, each time at a position, and so
  /// with random numbers, of its own. An epoch has `times` as many positions.
  Order repeated(std::uint64_t times) const;

 private:
  friend class Sampler;

  struct Shuffled {};
  struct Sequential {};
  struct Weighted {
    std::shared_ptr<const std::vector<double>> weights;
    std::uint64_t epoch_size;
  };
  struct Mixed {
    std::shared_ptr<const std::vector<Part>> parts;
    std::uint64_t epoch_size;
  };

  std::variant<Shuffled, Sequential, Blocks, Weighted, Mixed> mode_{};
  /// Null for all records.
  std::shared_ptr<const std::vector<std::uint64_t>> indices_{};
  std::uint64_t times_ = 1;
};

}  // namespace millrace
