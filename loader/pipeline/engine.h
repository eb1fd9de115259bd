// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/owner_process.h"
#include "pipeline/crew.h"
#include "pipeline/desk.h"
#include "pipeline/outlet.h"
#include "pipeline/planner.h"
#include "pipeline/prefetcher.h"
#include "pipeline/road/road.h"
#include "pipeline/road_threads.h"

namespace millrace {

/// What a pipeline is made of:
///
///     reaper: free host slot -> planner -> crew: makes its samples -> feeder: outlet ->
///     desk: hands out -> Batch: release
///        ^--------------- nothing reads the slot any more ----------------'
///
/// The pipeline alone owns it. Threads, jobs and live batches hold the parts that they use. All
/// methods may be called from any thread at once.
class Engine {
 public:
  /// Takes memory for all slots.
  Engine(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
         std::shared_ptr<Device> device, const PipelineOptions& options,
         std::shared_ptr<Runtime> runtime);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Whether this is the process that has its threads.
  bool here() const { return process_.here(); }
  /// Starts the threads; once.
  void start();
  /// Ends the run and everything that works for it. What is still running at `deadline` is let go;
  /// then the result says what it is.
  std::optional<Stuck> stop(Road::Clock::time_point deadline);

  const Schedule& schedule() const { return planner_->schedule(); }
  Batch next(const NextRequest& request);
  State state() const { return desk_->state_at(road_->position()); }
  Report report() const;
  void restart_report() {
    const MutexLock lock(report_mutex_);
    road_->take_report(crew_->figures());
  }
  Report take_report();

 private:
  Report report_of(const RunMeter& meter, const CrewFigures& figures,
                   Road::Clock::time_point now) const;

  const OwnerProcess process_;
  const std::string name_;
  const std::shared_ptr<Runtime> runtime_;
  const std::shared_ptr<Device> device_;
  std::shared_ptr<Crew> crew_;
  std::shared_ptr<Planner> planner_;
  std::shared_ptr<Prefetcher> prefetcher_;
  std::shared_ptr<Road> road_;
  std::shared_ptr<Outlet> outlet_;
  std::shared_ptr<Desk> desk_;
  MemoryReport memory_;
  std::vector<std::string> warnings_;

  /// Held by whoever begins a further report: no report begins with older figures than the last.
  Mutex report_mutex_;
  /// Held by whoever ends the run.
  Mutex stop_mutex_;
  std::optional<RoadThread> feeder_ MILLRACE_GUARDED_BY(stop_mutex_);
  std::optional<RoadThread> reaper_ MILLRACE_GUARDED_BY(stop_mutex_);
  std::optional<RoadThread> prefetching_ MILLRACE_GUARDED_BY(stop_mutex_);
};

}  // namespace millrace
