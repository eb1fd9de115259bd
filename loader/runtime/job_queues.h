// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

/// The items a pool has to give out: a queue of jobs per owner. Owners take turns item by item; the
/// items of one begin in order. One thread at a time may use it.
class JobQueues {
 public:
  struct Item {
    const void* owner = nullptr;
    std::shared_ptr<Job> job{};
    std::size_t number = 0;
    /// Whether it is its job's last one to begin.
    bool last = false;
  };
  struct QueuedJob {
    std::shared_ptr<Job> job;
    Help help;
  };

  /// Adds a job, which has at least one item.
  void add(const void* owner, std::shared_ptr<Job> job, Help help);
  /// Takes the next item, which is running until `ended`; with `for_helper` it takes only what
  /// other pools may help with. Nullopt if there is none.
  std::optional<Item> take(bool for_helper);
  /// Whether there is an item for a helper.
  bool allows_help() const;
  /// How many items are left, as far as `enough`.
  std::size_t left(std::size_t enough) const;
  /// Notes that one of the owner's items is done.
  void ended(const void* owner);
  /// How many items of this owner are running.
  unsigned running(const void* owner) const;
  /// Takes away and returns the owner's jobs of which not all items have begun.
  [[nodiscard]] std::deque<QueuedJob> drop(const void* owner);

 private:
  /// The front job's items are being given out.
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
