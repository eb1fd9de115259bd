// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline_options.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "dataset/stream/stream_dataset.h"
#include "pipeline/planning/planner.h"

namespace millrace {

/// Returns the sampler of a run over a stream. It only identifies the order: the planner takes the
/// records from the stream's windows. Throws `Error` (`invalid_argument`) for an order that needs
/// the number of records.
std::shared_ptr<RunSampler> stream_sampler(const StreamDataset& dataset,
                                           const PipelineOptions& options);
/// Returns a schedule whose epochs have `stream_epoch_size` positions. Throws `Error`
/// (`invalid_argument`) for several epochs of a stream that cannot restart.
Schedule stream_schedule(const StreamDataset& dataset, const PipelineOptions& options);
/// Returns the first record of the shuffle window in which a run resumes. Returns 0, the stream's
/// begin, if the run does not resume, or if the state's windows or order differ. `here` is this
/// run's state at the position to resume from.
std::uint64_t first_window(const PipelineOptions& options, const State& here);
/// Begins to read a stream for a run from `begin` on. Throws `Error` (`invalid_argument`) if
/// another run reads the stream.
std::shared_ptr<StreamWindows> begin_stream(const StreamDataset& dataset,
                                            const PipelineOptions& options,
                                            const Schedule& schedule, const RunPosition& begin);

/// Chooses the records of each slot from a stream. The schedule's epochs have `stream_epoch_size`
/// positions. The end of the stream ends an epoch earlier.
class StreamPlanner final : public Planner {
 public:
  StreamPlanner(std::shared_ptr<RunSampler> sampler, const Schedule& schedule,
                std::shared_ptr<StreamWindows> windows)
      : Planner(std::move(sampler), schedule), windows_(std::move(windows)) {}

  /// Waits for the stream. Returns without a plan when the windows are closed, which happens after
  /// the slot queues are closed. Throws the stream's error.
  void plan(HostSlot& host) override;

 private:
  const std::shared_ptr<StreamWindows> windows_;
};

}  // namespace millrace
