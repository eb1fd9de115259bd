// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion_work.h>
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
#include "pipeline/samples/sample_maker.h"
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
class Crew final : public HostWorkers, public std::enable_shared_from_this<Crew> {
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
  /// Takes turns with the making of samples, item by item. Never waits for a worker to begin, so
  /// it ends whatever the pools do.
  void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept override;
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
  class Part;
  class SharedJob;

  std::size_t samples_at_a_time(std::size_t samples) MILLRACE_REQUIRES(mutex_);
  void make_samples(Road& road, HostSlot& host, std::size_t first, std::size_t count,
                    unsigned worker) noexcept;
  void finish_batch(Road& road, HostSlot& host, unsigned worker);

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
  /// What samples took of late: each, and all that were made and the time in them when that was
  /// looked at.
  struct Pace {
    std::chrono::nanoseconds each = std::chrono::nanoseconds::max();
    std::uint64_t samples = 0;
    std::chrono::nanoseconds busy{0};
  };
  Pace pace_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
