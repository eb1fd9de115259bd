// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace millrace {

/// Sleeping workers of a pool, each on a condition of its own, so that exactly the called workers
/// wake. All methods but `wake` are called under the pool's mutex.
class ParkedWorkers {
 public:
  /// Largest number of workers that one call wakes.
  static constexpr std::size_t at_once = 2;

  /// Workers to wake after the mutex is released.
  class Called {
   public:
    std::size_t count() const { return count_; }
    void wake() const {
      for (std::size_t one = 0; one < count_; ++one) conditions_[one]->notify_one();
    }

   private:
    friend class ParkedWorkers;
    std::array<Condition*, at_once> conditions_{};
    std::size_t count_ = 0;
  };

  explicit ParkedWorkers(unsigned workers) : parked_workers_(workers) {}

  /// Blocks until the worker is called. Returns true if it was called for another pool's items.
  bool sleep(unsigned worker, Mutex& mutex) MILLRACE_REQUIRES(mutex) {
    ParkedWorker& self = parked_workers_[worker];
    self.rest = Rest::asleep;
    while (self.rest == Rest::asleep) self.condition.wait(mutex);
    self.rest = Rest::awake;
    return std::exchange(self.offered, false);
  }

  /// Marks up to `most` (at most `at_once`) sleeping workers among the first `active` as called.
  /// The caller must `wake` the returned ones.
  Called call(unsigned active, std::size_t most, bool offered = false) {
    Called called;
    for (unsigned worker = 0; worker < active && called.count_ < most; ++worker) {
      ParkedWorker& parked = parked_workers_[worker];
      if (parked.rest != Rest::asleep) continue;
      parked.rest = Rest::called;
      parked.offered = offered;
      called.conditions_[called.count_++] = &parked.condition;
    }
    return called;
  }

  /// Wakes all sleeping workers among the first `active`, under the mutex.
  void call_all(unsigned active) {
    for (Called called = call(active, at_once); called.count() > 0; called = call(active, at_once))
      called.wake();
  }

  /// Whether one of the first `active` workers sleeps, or was called and has not woken yet.
  bool any_waits(unsigned active) const {
    return std::any_of(parked_workers_.begin(),
                       parked_workers_.begin() + static_cast<std::ptrdiff_t>(active),
                       [](const ParkedWorker& parked) { return parked.rest != Rest::awake; });
  }

 private:
  enum class Rest { awake, asleep, called };
  struct ParkedWorker {
    Rest rest = Rest::awake;
    bool offered = false;
    Condition condition;
  };

  std::vector<ParkedWorker> parked_workers_;
};

}  // namespace millrace
