// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/mutex.h"
#include "order/order_mode.h"
#include "order/permutation.h"

namespace millrace {
namespace {

using Lengths = std::shared_ptr<const std::vector<std::uint32_t>>;
using Indices = std::shared_ptr<const std::vector<std::uint64_t>>;

/// Consecutive offsets of an epoch, and the numbers drawn at them.
struct Window {
  std::uint64_t epoch;
  std::uint64_t first;
  std::vector<std::uint64_t> numbers;

  bool has(std::uint64_t in_epoch, std::uint64_t offset) const {
    return epoch == in_epoch && offset >= first && offset - first < numbers.size();
  }
};

/// Cache of the windows that were used last, for all threads. Two threads of a pipeline draw, one
/// ahead of the other. Each may draw from two adjacent windows.
class LastWindows {
 public:
  std::shared_ptr<const Window> find(std::uint64_t epoch, std::uint64_t offset) {
    MutexLock lock(mutex_);
    for (auto window = windows_.begin(); window != windows_.end() && *window; ++window)
      if ((*window)->has(epoch, offset)) {
        std::rotate(windows_.begin(), window, window + 1);
        return windows_.front();
      }
    return nullptr;
  }

  /// Adds a window and evicts the least recently used one.
  void add(std::shared_ptr<const Window> window) {
    MutexLock lock(mutex_);
    std::swap(windows_.back(), window);  // the evicted window is freed after the unlock
    std::rotate(windows_.begin(), windows_.end() - 1, windows_.end());
  }

 private:
  Mutex mutex_;
  std::array<std::shared_ptr<const Window>, 4> windows_ MILLRACE_GUARDED_BY(mutex_);
};

class BucketedMode final : public OrderMode {
 public:
  BucketedMode(Lengths lengths, Indices indices, Order::Buckets buckets, std::uint64_t seed)
      : lengths_(std::move(lengths)),
        indices_(std::move(indices)),
        count_(indices_ ? indices_->size() : lengths_->size()),
        group_(buckets.group_records),
        window_(buckets.window_records),
        seed_(derived_key(seed, purpose)) {}

  std::uint64_t epoch_size() const override { return count_; }
  std::uint64_t replacement(std::uint64_t /*epoch*/, Random& random) const override {
    return random.below(count_);
  }

  void draw(std::uint64_t epoch, std::span<std::uint64_t> offsets) const override {
    std::shared_ptr<const Window> window;
    for (std::uint64_t& offset : offsets) {
      if (!window || !window->has(epoch, offset)) window = window_at(epoch, offset);
      offset = window->numbers[offset - window->first];
    }
  }

 private:
  static constexpr std::uint64_t purpose = 0x6275636B657473;  // keeps keys of modes distinct
  static constexpr std::size_t permuted_at_once = 64;

  /// No lock is held while a window is made. If two threads need the same window at once, both make
  /// it, with the same result.
  std::shared_ptr<const Window> window_at(std::uint64_t epoch, std::uint64_t offset) const {
    if (auto found = last_.find(epoch, offset)) return found;
    auto made = std::make_shared<const Window>(make_window(epoch, offset / window_));
    last_.add(made);
    return made;
  }

  std::uint32_t length_of(std::uint64_t number) const {
    return (*lengths_)[indices_ ? (*indices_)[number] : number];
  }

  Window make_window(std::uint64_t epoch, std::uint64_t place) const {
    const std::uint64_t key = derived_key(seed_, epoch);
    const std::uint64_t first = place * window_;
    const std::vector<std::uint64_t> shuffled =
        shuffled_numbers(key, first, std::min(window_, count_ - first));

    // Sort key: the length, then the place in the shuffled window, which fits into 32 bits. So
    // records of equal length stay shuffled.
    std::vector<std::uint64_t> sorted(shuffled.size());
    for (std::uint64_t n = 0; n < sorted.size(); ++n)
      sorted[n] = std::uint64_t{length_of(shuffled[n])} << 32 | n;
    std::ranges::sort(sorted);

    const std::uint64_t key_of_window = derived_key(key, place);
    const std::uint64_t groups = sorted.size() / group_;
    move_short_group(sorted, sorted.size() % group_, key_of_window);

    Window window{epoch, first, {}};
    window.numbers.reserve(sorted.size());
    const auto take = [&](std::uint64_t begin, std::uint64_t records) {
      for (std::uint64_t n = begin; n < begin + records; ++n)
        window.numbers.push_back(shuffled[sorted[n] & UINT32_MAX]);
    };
    const Permutation of_groups(std::max<std::uint64_t>(groups, 1), key_of_window);
    for (std::uint64_t n = 0; n < groups; ++n) take(of_groups(n) * group_, group_);
    take(groups * group_, sorted.size() % group_);
    return window;
  }

  /// Moves the short group, which only the epoch's last window has, behind all others. Its records
  /// are adjacent, from a random position on, and continue at the beginning after the last record.
  /// So each record is equally likely to be in the short group. If it always had the longest
  /// records, `LastBatch::drop` would never use them.
  static void move_short_group(std::vector<std::uint64_t>& sorted, std::uint64_t records,
                               std::uint64_t key) {
    if (records == 0) return;
    const auto at = [&](std::uint64_t n) {
      return sorted.begin() + static_cast<std::ptrdiff_t>(n);
    };
    const std::uint64_t size = sorted.size();
    const std::uint64_t begin = Random(key, 0).below(size);
    if (begin + records <= size) {
      std::rotate(at(begin), at(begin + records), sorted.end());
    } else {
      std::rotate(sorted.begin(), at(begin + records - size), sorted.end());
      std::sort(at(size - records), sorted.end());
    }
  }

  /// Returns the numbers of the epoch's full shuffle at these places.
  std::vector<std::uint64_t> shuffled_numbers(std::uint64_t key, std::uint64_t first,
                                              std::uint64_t records) const {
    std::vector<std::uint64_t> numbers(records);
    std::iota(numbers.begin(), numbers.end(), first);
    for (std::span<std::uint64_t> left = numbers; !left.empty();) {
      const std::span<std::uint64_t> some = left.first(std::min(left.size(), permuted_at_once));
      permute(count_, key, some);
      left = left.subspan(some.size());
    }
    return numbers;
  }

  const Lengths lengths_;
  const Indices indices_;
  const std::uint64_t count_;
  const std::uint64_t group_;
  const std::uint64_t window_;
  const std::uint64_t seed_;
  mutable LastWindows last_;
};

}  // namespace

std::shared_ptr<const OrderMode> bucketed_mode(Lengths lengths, Indices indices,
                                               Order::Buckets buckets, std::uint64_t seed) {
  return std::make_shared<BucketedMode>(std::move(lengths), std::move(indices), buckets, seed);
}

}  // namespace millrace
