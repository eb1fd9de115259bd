// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/runtime.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "pipeline/batch_fields.h"
#include "pipeline/pipeline_nodes.h"
#include "pipeline/road/road.h"
#include "pipeline/sample_maker.h"
#include "runtime/auto_workers.h"

namespace millrace {

/// What does not end.
struct Stuck {
  std::string stage;
  std::string what;
};

/// The workers that make the samples of planned slots. Its jobs hold it, so a sample that hangs
/// keeps dataset and transform, while the runtime's pools may be gone: they are used until
/// `dismiss` alone, and for reports. All methods may be called from any thread at once.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  using Clock = std::chrono::steady_clock;

  /// The samples that it makes, and where they lie in a slot.
  Crew(std::unique_ptr<SampleMaker> maker, const BatchFields& fields, const SlotLayout& layout,
       Runtime& runtime, PipelineNodes nodes);

  PipelineNodes& nodes() { return nodes_; }

  /// The workers begin to be needed.
  void start();
  /// Makes the samples of a planned slot, and tells the road of each.
  void submit(std::shared_ptr<Road> road, HostSlot& host);
  /// A batch was handed out: says from time to time how many workers are needed, if the runtime
  /// adapts to that.
  void adapt(const Road& road);
  /// How many workers are active.
  unsigned concurrency() const;
  /// Ends its work, and names what has not ended by `deadline`.
  std::optional<Stuck> dismiss(Clock::time_point deadline);

  CrewFigures figures() const;
  /// Writes into a report who made which samples since `base`.
  void fill(Report& report, const CrewFigures& now, const CrewFigures& base) const;

 private:
  class BatchJob;

  void make_sample(Road& road, HostSlot& host, std::size_t sample, unsigned worker) noexcept;

  const std::unique_ptr<SampleMaker> maker_;
  const BatchFields fields_;
  const SlotLayout layout_;
  Runtime& runtime_;
  PipelineNodes nodes_;

  /// Held while the pools are used.
  mutable Mutex mutex_;
  bool dismissed_ MILLRACE_GUARDED_BY(mutex_) = false;
  AutoWorkers auto_workers_ MILLRACE_GUARDED_BY(mutex_);
  /// Since the number of workers was last chosen.
  struct Window {
    Clock::time_point begin = Clock::now();
    std::uint64_t batches = 0;
    std::chrono::nanoseconds busy{0};
    std::chrono::nanoseconds stalled{0};
  };
  Window window_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
