// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/sampler.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "pipeline/road/road.h"
#include "pipeline/road/schedule.h"

namespace millrace {

/// Tells the dataset of the records of planned batches and some ahead of them, each once, on a
/// thread of its own: a dataset that has to look for its records may wait for its disk, which holds
/// up nobody else then.
class Prefetcher {
 public:
  /// How many batches ahead it may be.
  static constexpr std::size_t furthest = 4096;

  /// Of the batches from number `first` on, `read_ahead` beyond the planned ones.
  Prefetcher(std::shared_ptr<const Dataset> dataset, Sampler sampler, const Schedule& schedule,
             std::uint64_t first, std::size_t read_ahead);

  /// The batches up to `number` are planned. From any thread.
  void planned(std::uint64_t number);
  /// Ends the thread. From any thread.
  void close();
  /// The thread's life, until it is closed. An exception of the dataset is a warning.
  void run(Road& road) noexcept;

  /// The dataset's name.
  const std::string& name() const { return name_; }
  /// Warnings about the dataset's exceptions, for the report. From any thread.
  std::vector<std::string> warnings() const;

 private:
  /// The next batch to tell of; nullopt when it is closed.
  std::optional<std::uint64_t> wait_for_number();
  void tell(const BatchPlan& plan);
  void note_failure(const std::string& what);

  const std::shared_ptr<const Dataset> dataset_;
  const std::string name_;
  const Sampler sampler_;
  const Schedule schedule_;
  const std::size_t read_ahead_;
  std::vector<std::uint64_t> records_;

  mutable Mutex mutex_;
  Condition changed_;
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::uint64_t next_ MILLRACE_GUARDED_BY(mutex_);
  /// The first exception of the dataset, and how many there were.
  std::string first_failure_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t failures_ MILLRACE_GUARDED_BY(mutex_) = 0;
  /// The number behind the last batch to tell of.
  std::uint64_t end_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
