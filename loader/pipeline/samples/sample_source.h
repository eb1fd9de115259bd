// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/samples/sample_maker.h"

namespace millrace {

/// The tasks of a worker, as samples for its transform: reads their records, and keeps to the
/// policy for bad ones. For one thread, and one call of `SampleMaker::make`.
class WorkerSource final : public SampleSource {
 public:
  using Clock = SampleMaker::Clock;

  WorkerSource(SampleMaker& maker, SampleMaker::Worker& worker, SampleMaker::Tasks& tasks)
      : maker_(maker), worker_(worker), tasks_(tasks) {}
  ~WorkerSource() override;
  WorkerSource(const WorkerSource&) = delete;
  WorkerSource& operator=(const WorkerSource&) = delete;

  /// Who makes the samples, made here for the first one; nullptr if there are none to make.
  TransformWorker* transform();

  SampleTask* next() override;
  void made(SampleTask& task, const Status& status) override;
  void failed(SampleTask& task) override;

 private:
  using Place = SampleMaker::Place;

  std::span<Place> places() { return std::span(worker_.places).first(maker_.at_once_); }
  Place& place_of(const SampleTask& task);
  Place* find_place();
  Clock::time_point begin();
  Record read(Place& place, Clock::time_point begin);
  SampleTask& give(Place& place, const Record& record);
  void end(Place& place, const Status& status);
  void note_stages(Place& place);
  void judge(Place& place, const Status& status);
  Status bad_by_exception(const Place& place);
  Status intact(Place& place);
  bool misses_field(const Place& place, const Error& error) const;
  void check_written(Place& place);
  static void leave(Place& place);

  SampleMaker& maker_;
  SampleMaker::Worker& worker_;
  SampleMaker::Tasks& tasks_;
  /// When the last sample ended, or its record was read.
  Clock::time_point now_ = Clock::now();
  /// Up to where the trace's lane is drawn. What is made in turn is drawn one after the other.
  Clock::time_point drawn_ = now_;
};

}  // namespace millrace
