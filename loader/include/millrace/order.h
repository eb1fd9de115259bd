// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: an `Order` is an immutable value. Copies share its lists. It may be used
// from any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace MILLRACE_API millrace {

class Dataset;

/// The order in which a run uses a dataset's records. It is data that is cheap to copy; a `Sampler`
/// computes record indices from it. A run counts its samples, over all ranks and epochs: a sample's
/// number is its position. Each function below that makes an order (`shuffled`, `blocks` ...)
/// selects a mode. The mode says which record each position gets and how many positions form an
/// epoch. All functions throw an `Error` (`invalid_argument`) that names the wrong value; for a
/// value in a list, also its index. `Sampler` checks the order against the dataset's size.
class Order {
 public:
  struct Blocks {
    /// Consecutive records per block; the dataset's last block may be shorter.
    std::uint64_t block_records = 1024;
    /// Number of blocks whose records are shuffled together.
    std::uint64_t window_blocks = 16;
  };
  struct Buckets {
    /// Number of records that are sorted by length together: at least `group_records`, at most
    /// 2^32. It is rounded down to whole groups.
    std::uint64_t window_records = 8192;
    /// Number of consecutive records of similar length, usually those of a global batch: the batch
    /// size times the number of ranks. Required. In an order that is `repeated` n times, it is
    /// usually 1/n of the global batch.
    std::uint64_t group_records = 0;
  };
  struct Part {
    /// Number of records in this part of a joined dataset. Their indices follow those of the parts
    /// before it.
    std::uint64_t records = 0;
    /// Weight of this part. Its share of the samples is the weight divided by the sum of all
    /// weights. Weights are finite and not negative, and at least one is positive.
    double weight = 1;
  };

  /// Full shuffle. Each epoch contains every record exactly once, in a new order. O(1) memory.
  Order() = default;
  static Order shuffled() { return {}; }

  /// Records 0, 1, 2 ..., the same in every epoch.
  static Order sequential();

  /// Near-sequential reads, for cold or network storage. The blocks of consecutive records are put
  /// in random order. This sequence of blocks is cut into windows of `window_blocks` blocks. The
  /// records of a window are shuffled together. Each epoch contains every record exactly once, in a
  /// new order. O(1) memory.
  static Order blocks(Blocks blocks);
  static Order blocks() { return blocks(Blocks()); }

  /// Batches of records of similar length, so that texts and similar data need little padding. Each
  /// epoch contains every record exactly once, in a new order, which is made in four steps:
  /// 1. All records are shuffled and divided into windows.
  /// 2. Each window is sorted by length; records of equal length stay shuffled.
  /// 3. Each window is cut into groups. A group's records are in ascending order of length.
  /// 4. The groups of a window are shuffled.
  /// If an epoch is not a whole number of groups, its last group is shorter. Each record of the
  /// last window is equally likely to be in that group. If `group_records` is the global batch,
  /// each batch is one group, and the order does not depend on the number of ranks.
  ///
  /// `lengths` has one value for each record of the dataset, in any unit, even if the order is a
  /// subset; `record_lengths` reads them. `window_records` and `group_records` count records before
  /// they are `repeated`: in an order that is repeated n times, a group of r records has n * r
  /// positions.
  ///
  /// Memory: 4 bytes per record. A `Sampler` and its copies together cache the 4 windows that were
  /// used last, with 8 bytes per record. A thread that draws from another window sorts this window
  /// first. It holds no lock, so other threads continue. If several threads need the same window at
  /// the same time, each of them sorts it. Sorting needs 16 more bytes for each of the window's
  /// records. Source: the length-grouped sampler of Hugging Face's Transformers. Its mega-batches
  /// are these windows.
  static Order bucketed(std::vector<std::uint32_t> lengths, Buckets buckets);
  /// Does the same with the size of `field` in bytes as a record's length. Each new `Pipeline`
  /// reads all records once to get the sizes (`measured`). To make several pipelines over one
  /// dataset, read the lengths once and use `bucketed`.
  static Order bucketed_by(std::string field, Buckets buckets);
  /// Returns this order. If `bucketed_by` made it, the result also has the lengths of all records,
  /// which this function reads from `dataset`. Throws the errors of `record_lengths`.
  Order measured(const Dataset& dataset) const;

  /// Draws with replacement, each record with a probability in proportion to its weight. Weights
  /// are finite and not negative, and at least one is positive. They are converted to integers: the
  /// largest weight becomes 2^62 / n, where n is the number of records rounded up to a power of
  /// two. A positive weight stays positive.
  ///
  /// An epoch has `epoch_size` draws, 0 = as many as there are weights; every epoch makes new
  /// draws. O(weights) memory: 24 bytes per weight, and about twice as much while a `Sampler` is
  /// made. Source: Walker, "An efficient method for generating discrete random variables with
  /// general distributions", 1977; Vose, "A linear algorithm for generating random numbers with a
  /// given distribution", 1991.
  static Order weighted(std::vector<double> weights, std::uint64_t epoch_size = 0);
  /// Returns this order with `weights` in force from `epoch` on, until the next epoch that has
  /// weights of its own. Only for a `weighted` order. There must be as many weights as before.
  /// Checks the weights as `weighted` does. `Pipeline::set_weights` does the same in a running
  /// pipeline. O(weights) memory for each change. To resume a run from a state with
  /// `State::new_weights`, call this function for each epoch that they name. They contain only
  /// epochs and hashes, so the trainer must store the weights itself.
  Order reweighted(std::uint64_t epoch, std::vector<double> weights) const;

  /// Gives each part of a joined dataset (`concat_datasets`) its share of the samples. Each part is
  /// shuffled separately: a pass uses all its records once, and the next pass uses them in another
  /// order.
  ///
  /// The positions are divided into segments of equal length: 2^10, 2^12 ... or 2^24. The number of
  /// samples of a part is the same in all segments: the part's share, rounded to whole samples. The
  /// length is the smallest of these that brings each share within 1 % of its weight. At 2^24, the
  /// shares of rare parts may differ more. Within a segment the sequence of parts is random, and so
  /// is the order of a part's draws. So if a pass over a part ends within a segment, its last draws
  /// are mixed with the first draws of the next pass.
  ///
  /// A pass over a part may continue in the next epoch. An epoch has `epoch_size` positions, 0 =
  /// the number of records of all parts. O(parts) memory.
  static Order mixed(std::vector<Part> parts, std::uint64_t epoch_size = 0);

  /// Returns this order over a list of records: the mode orders the elements of the list instead of
  /// the dataset's records. A record that is listed twice counts as two records. If this order is
  /// already a subset, `indices` are positions in its list. O(indices) memory.
  Order subset(std::vector<std::uint64_t> indices) const;
  /// Returns the `subset` of this order with all indices below `records` for which `keep` returns
  /// true.
  Order filtered(std::uint64_t records, const std::function<bool(std::uint64_t)>& keep) const;

  /// Whether this is `shuffled()`, over all records and not repeated.
  bool is_shuffled() const { return is_plain<Shuffled>(); }
  /// Whether this is `sequential()`, over all records and not repeated.
  bool is_sequential() const { return is_plain<Sequential>(); }

  /// Repeats each record `times` times in a row (repeated augmentation). Each repetition has its
  /// own position, and so its own random numbers. An epoch has `times` as many positions.
  Order repeated(std::uint64_t times) const;

 private:
  friend class Sampler;

  struct Shuffled {};
  struct Sequential {};
  using Weights = std::shared_ptr<const std::vector<double>>;
  struct EpochWeights {
    std::uint64_t first_epoch;
    Weights weights;
  };
  struct Weighted {
    /// Sorted by epoch. The first entry is for epoch 0.
    std::vector<EpochWeights> epochs;
    std::uint64_t epoch_size;
  };
  struct Mixed {
    std::shared_ptr<const std::vector<Part>> parts;
    std::uint64_t epoch_size;
  };

  struct BucketData {
    /// Null until the lengths are measured.
    std::shared_ptr<const std::vector<std::uint32_t>> lengths;
    std::string field;
    Buckets buckets;
  };
  struct Bucketed {
    std::shared_ptr<const BucketData> data;
  };

  template <typename Mode>
  bool is_plain() const {
    return std::holds_alternative<Mode>(mode_) && indices_ == nullptr && times_ == 1;
  }
  static Order checked(BucketData data);
  static Weights checked(std::vector<double> weights);
  /// Does the same for weights that replace those of this order, which must be `weighted`.
  Weights checked_new(std::vector<double> weights) const;

  std::variant<Shuffled, Sequential, Blocks, Weighted, Mixed, Bucketed> mode_{};
  /// Null for all records.
  std::shared_ptr<const std::vector<std::uint64_t>> indices_{};
  std::uint64_t times_ = 1;
};

}  // namespace millrace
