// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: an `Order` is a value that does not change once it is made and that shares
// its lists with its copies; it may be used from any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace MILLRACE_API millrace {

class Dataset;

/// The order in which a run takes a dataset's records, as data that is cheap to copy. A `Sampler`
/// turns it into records. Each mode says which positions are an epoch. All functions throw `Error`
/// (`invalid_argument`), which names the value and its place; what contradicts the dataset's size
/// is found by `Sampler`.
class Order {
 public:
  struct Blocks {
    /// Consecutive records per block; the dataset's last block may be shorter.
    std::uint64_t block_records = 1024;
    /// How many blocks have their records shuffled among each other.
    std::uint64_t window_blocks = 16;
  };
  struct Buckets {
    /// Records that are sorted by length together; at least a group, at most 2^32. What is over
    /// whole groups is left out of it.
    std::uint64_t window_records = 8192;
    /// Records that come side by side and are alike in length: the global batch, which is the batch
    /// size times the number of ranks. It must be given.
    std::uint64_t group_records = 0;
  };
  struct Part {
    /// Records of this part, which follow those of the parts before.
    std::uint64_t records = 0;
    /// Its share of the samples is this divided by the sum of all; finite, not negative, not all 0.
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

  /// Batches of records of about the same length, so that texts and the like need little padding.
  /// An epoch has every record exactly once, in an order of its own: all are shuffled, each window
  /// of them is sorted by length (equal ones stay shuffled) and cut into groups, and these come in
  /// random order within their window, each from its shortest record to its longest. If an epoch is
  /// no whole number of groups, the short one comes last of all, and each record of the last window
  /// is as likely to be in it. So each batch is one group if `group_records` is the global batch,
  /// and the order does not depend on the number of ranks. `lengths`, in any unit, has one for each
  /// record of the dataset, also if the order is of a subset; `record_lengths` reads them. A group
  /// of an order that is `repeated` n times has n times as many positions.
  ///
  /// Memory: 4 bytes per record, and for each `Sampler` with its copies 8 bytes per record of the
  /// last 4 windows that were drawn from. Who first draws from a window sorts it, without a lock,
  /// and takes 16 bytes more for each of its records meanwhile. Source: the sampler that groups by
  /// length of Hugging Face's Transformers, whose mega-batches are these windows.
  static Order bucketed(std::vector<std::uint32_t> lengths, Buckets buckets);
  /// The same by the bytes of a field, which a `Pipeline` reads from the dataset when it is made
  /// (`measured`): once over all records, each time. Who makes several pipelines over one dataset
  /// keeps the lengths.
  static Order bucketed_by(std::string field, Buckets buckets);
  /// This order, with the lengths of all records of `dataset` if it has but the name of a field.
  /// Throws what `record_lengths` throws.
  Order measured(const Dataset& dataset) const;

  /// Drawn with replacement, each record with the odds of its weight: finite, not negative, not all
  /// 0. The odds are those of integers in proportion to the weights, of which the largest is 2^62
  /// divided by the number of records, rounded up to a power of two; no positive weight becomes 0.
  /// An epoch is `epoch_size` draws, 0 = as many as there are weights; each draw of a run is new.
  /// O(weights) memory: 24 bytes each, and about twice that while a `Sampler` is made. Source:
  /// Walker, "An efficient method for generating discrete random variables with general
  /// distributions", 1977; Vose, "A linear algorithm for generating random numbers with a given
  /// distribution", 1991.
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

  struct Bucketing {
    /// Null until they are measured.
    std::shared_ptr<const std::vector<std::uint32_t>> lengths;
    std::string field;
    Buckets buckets;
  };
  struct Bucketed {
    std::shared_ptr<const Bucketing> how;
  };

  static Order checked(Bucketing bucketing);

  std::variant<Shuffled, Sequential, Blocks, Weighted, Mixed, Bucketed> mode_{};
  /// Null for all records.
  std::shared_ptr<const std::vector<std::uint64_t>> indices_{};
  std::uint64_t times_ = 1;
};

}  // namespace millrace
