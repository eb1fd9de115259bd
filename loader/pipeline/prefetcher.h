// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "pipeline/planning/run_sampler.h"
#include "pipeline/slots/schedule.h"
#include "pipeline/slots/slot_queues.h"

namespace millrace {

/// Announces the records that will be read (`Dataset::prefetch`): those of planned batches and of
/// some batches after them. It announces each batch once. It runs on a thread of its own, since the
/// dataset may wait for a disk.
class Prefetcher {
 public:
  /// Largest number of batches to prefetch after the planned ones.
  static constexpr std::size_t max_read_ahead = 4096;

  /// Begins with batch `first`. Prefetches up to `read_ahead` batches after the last planned one.
  /// With `epoch_break`, these are batches of its epoch only. Draws records with the present
  /// weights. The weights of an epoch that is not planned yet may still change.
  Prefetcher(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const RunSampler> sampler,
             const Schedule& schedule, std::uint64_t first, std::size_t read_ahead,
             bool epoch_break = false);

  /// Notes that the batches up to and including `number` are planned. May be called from any
  /// thread.
  void note_planned(std::uint64_t number);
  /// Ends the thread. May be called from any thread.
  void close();
  /// Body of the thread; returns after `close`. An exception of the dataset becomes a warning.
  void run(SlotQueues& queues) noexcept;

  /// The dataset's name.
  const std::string& name() const { return name_; }
  /// Returns warnings about the dataset's exceptions, for the report. May be called from any
  /// thread.
  std::vector<std::string> warnings() const;

 private:
  /// Waits until a batch may be prefetched, and returns its number; nullopt after `close`.
  std::optional<std::uint64_t> wait_for_batch();
  void announce(const BatchPlan& plan);
  void note_failure(const std::string& what);

  const std::shared_ptr<const Dataset> dataset_;
  const std::string name_;
  const std::shared_ptr<const RunSampler> sampler_;
  const Schedule schedule_;
  const std::size_t read_ahead_;
  const bool epoch_break_;
  std::vector<std::uint64_t> records_;

  mutable Mutex mutex_;
  Condition changed_;
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::uint64_t next_ MILLRACE_GUARDED_BY(mutex_);
  /// The dataset's first exception, and the number of exceptions.
  std::string first_failure_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t failures_ MILLRACE_GUARDED_BY(mutex_) = 0;
  /// Number after the last batch to prefetch.
  std::uint64_t end_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
