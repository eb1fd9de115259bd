// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/samples/sample_maker.h"

namespace millrace {

/// Gives a worker's tasks to its transform as samples: reads their records and applies the policy
/// for bad records. Made for one call of `SampleMaker::make`, on its thread.
class WorkerSource final : public SampleSource {
 public:
  using Clock = SampleMaker::Clock;

  WorkerSource(SampleMaker& maker, SampleMaker::Worker& worker, SampleMaker::Tasks& tasks)
      : maker_(maker), worker_(worker), tasks_(tasks) {}
  ~WorkerSource() override;
  WorkerSource(const WorkerSource&) = delete;
  WorkerSource& operator=(const WorkerSource&) = delete;

  /// Returns the worker that makes the samples; the first call constructs it. Returns nullptr if
  /// `tasks` is empty.
  TransformWorker* transform();

  SampleTask* next() override;
  void made(SampleTask& task, const Status& status) override;
  void failed(SampleTask& task) override;

 private:
  using SampleLane = SampleMaker::SampleLane;

  std::span<SampleLane> lanes() { return std::span(worker_.lanes).first(maker_.at_once_); }
  SampleLane& lane_of(const SampleTask& task);
  SampleLane* find_lane();
  Clock::time_point begin();
  Record read(SampleLane& lane, Clock::time_point begin);
  SampleTask& give(SampleLane& lane, const Record& record);
  void end(SampleLane& lane, const Status& status);
  void note_stages(SampleLane& lane);
  void judge(SampleLane& lane, const Status& status);
  Status bad_by_exception(const SampleLane& lane);
  Status intact(SampleLane& lane);
  bool misses_field(const SampleLane& lane, const Error& error) const;
  void check_written(SampleLane& lane);
  static void leave(SampleLane& lane);

  SampleMaker& maker_;
  SampleMaker::Worker& worker_;
  SampleMaker::Tasks& tasks_;
  /// Time at which the last sample ended, or at which its record was read.
  Clock::time_point now_ = Clock::now();
  /// End of the last span in the trace's lane. Spans of interleaved samples are drawn one after the
  /// other.
  Clock::time_point drawn_ = now_;
};

}  // namespace millrace
