// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

/// Items of a pool's jobs, with one queue of jobs per owner. Owners are served round-robin, one
/// item at a time. The items of one owner begin in order. For one thread at a time.
class JobQueues {
 public:
  struct Item {
    const void* owner = nullptr;
    std::shared_ptr<Job> job{};
    std::size_t number = 0;
    /// Whether it is the last item of its job to begin.
    bool last = false;
  };
  struct QueuedJob {
    std::shared_ptr<Job> job;
    Help help;
  };

  /// Appends a job, which must have at least one item.
  void add(const void* owner, std::shared_ptr<Job> job, Help help);
  /// Takes the next item, which counts as running until `ended`. With `for_helper`, skips jobs that
  /// other pools may not help with. Returns nullopt if no item is left.
  std::optional<Item> take(bool for_helper);
  /// Whether a helper could take an item.
  bool allows_help() const;
  /// Returns how many items are left, or `enough` if there are more.
  std::size_t count_up_to(std::size_t enough) const;
  /// Notes that one of the owner's items is done.
  void ended(const void* owner);
  /// Number of this owner's running items.
  unsigned running(const void* owner) const;
  /// Removes and returns the owner's jobs that have items left to begin.
  [[nodiscard]] std::deque<QueuedJob> drop(const void* owner);

 private:
  /// Items are taken from the front job.
  struct Queue {
    const void* owner = nullptr;
    std::deque<QueuedJob> jobs{};
    std::size_t next_item = 0;
    unsigned running = 0;
  };
  using Queues = std::vector<Queue>;

  Queues::iterator find(const void* owner);
  void erase_if_idle(Queues::iterator queue);

  Queues queues_;
  std::size_t turn_ = 0;
};

}  // namespace millrace
