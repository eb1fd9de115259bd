// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/stream_planner.h"

#include <millrace/error.h>
#include <xxhash.h>

#include <optional>
#include <string>

namespace millrace {
namespace {

[[noreturn]] void refuse_stream_run(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message, "plan");
}

}  // namespace

std::shared_ptr<RunSampler> stream_sampler(const StreamDataset& dataset,
                                           const PipelineOptions& options) {
  if (!options.order.is_shuffled() && !options.order.is_sequential())
    refuse_stream_run(dataset.name() +
                      ": the order needs the number of records, which is known only at the "
                      "stream's end; use Order::shuffled() or Order::sequential()");
  const Sampler sampler(options.order, stream_epoch_size, options.seed);
  auto of_run = std::make_shared<RunSampler>(sampler);
  const std::uint64_t windows[] = {sampler.hash(), dataset.options().window_records,
                                   dataset.options().memory_bytes};
  of_run->hashes()->set(0, XXH3_64bits(windows, sizeof windows));
  return of_run;
}

Schedule stream_schedule(const StreamDataset& dataset, const PipelineOptions& options) {
  PipelineOptions of_passes = options;
  if (!dataset.can_restart()) {
    if (options.epochs > 1)
      refuse_stream_run(dataset.name() + ": epochs is " + std::to_string(options.epochs) +
                        ", but this stream can be read only once; set epochs to 1");
    of_passes.epochs = 1;
  }
  return Schedule(stream_epoch_size, of_passes);
}

std::uint64_t first_window(const PipelineOptions& options, const State& here) {
  const std::optional<State>& from = options.resume.from;
  // If the state has no window, or windows or order differ, reading begins at the first record.
  if (!from || !from->window || from->sampler != here.sampler) return 0;
  if (*from->window > from->position % stream_epoch_size)
    refuse_stream_run("the state to resume from has window " + std::to_string(*from->window) +
                      ", which lies behind record " +
                      std::to_string(from->position % stream_epoch_size) +
                      ", where the run resumes; use a state that millrace saved");
  return *from->window;
}

std::shared_ptr<StreamWindows> begin_stream(const StreamDataset& dataset,
                                            const PipelineOptions& options,
                                            const Schedule& schedule, const RunPosition& begin) {
  const std::uint64_t end = schedule.end();
  return dataset.begin(
      {.seed = options.seed,
       .shuffled = options.order.is_shuffled(),
       .epoch = begin.position / stream_epoch_size,
       .end_epoch = end == UINT64_MAX ? UINT64_MAX : end / schedule.batches_per_epoch(),
       .first_record = begin.window});
}

void StreamPlanner::plan(HostSlot& host) {
  const std::uint64_t number = host.plan.number;
  const std::uint64_t per_epoch = schedule().batches_per_epoch();
  const std::uint64_t epoch = number / per_epoch;
  const std::uint64_t batch = schedule().global_batch();
  const std::uint64_t begin = number % per_epoch * batch;
  const bool drops = schedule().last_batch() == LastBatch::drop;
  const std::optional<StreamWindows::Extent> extent =
      windows_->wait_for({.epoch = epoch,
                          .begin = begin,
                          .end = begin + batch,
                          // With one more batch or record, it is known whether this is the epoch's
                          // last batch.
                          .known = begin + batch + (drops ? batch : 1)});
  if (!extent) return;
  const std::uint64_t records = extent->records.value_or(schedule().epoch_size());
  if (records == 0)
    throw Error(ErrorCode::invalid_argument,
                windows_->name() +
                    ": the stream is empty (0 records, expected at least 1); open one that has "
                    "records",
                "plan");
  const Schedule known = schedule().of_one_epoch(records);
  if (number % per_epoch >= known.batches_per_epoch())
    throw Error(ErrorCode::invalid_argument,
                windows_->name() + ": the stream ends after " + std::to_string(records) +
                    " records, but the run resumes at record " + std::to_string(begin) +
                    "; resume with the stream that the state was saved from",
                "plan");

  BatchPlan plan = known.batch(number % per_epoch).value();
  const std::uint64_t count = plan.global_size;
  const std::uint64_t first_position = epoch * schedule().epoch_size();
  host.positions.resize(plan.size);
  host.records.indices.resize(plan.size);
  host.records.valid.resize(plan.size);
  for (std::size_t sample = 0; sample < plan.size; ++sample) {
    const bool is_padding = known.is_padding(plan, sample);
    // The epoch's first records are no longer in memory, so padding repeats the records of this
    // batch.
    const std::uint64_t place = plan.first_offset + sample - begin;
    host.records.indices[sample] = begin + (is_padding ? place % count : place);
    host.positions[sample] = first_position + host.records.indices[sample];
    host.records.valid[sample] = is_padding ? 0 : 1;
  }
  windows_->draw(host.records.indices);
  if (plan.size > 0) host.records_held = windows_->hold(begin);
  host.sampler = sampler_for(epoch);

  plan.window_after = plan.last_in_epoch ? 0 : windows_->window_of(begin + count);
  plan.number = number;
  plan.epoch = epoch;
  plan.skipped_numbers = plan.last_in_epoch ? per_epoch - known.batches_per_epoch() : 0;
  plan.position_after = plan.last_in_epoch ? first_position + schedule().epoch_size()
                                           : first_position + begin + count;
  host.plan = plan;
}

}  // namespace millrace
