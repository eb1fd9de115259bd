// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/run_meter.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

double seconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

RunMeter::RunMeter(std::shared_ptr<Trace> trace, std::size_t group,
                   const std::vector<std::string>& conversions, Clock::time_point started)
    : trace_(std::move(trace)), started_(started), since_(started), returned_(started) {
  for (const std::string& name : conversions)
    conversions_.push_back({.name = name, .span = trace_ == nullptr ? "" : trace_->keep(name)});
  if (trace_ == nullptr) return;
  lanes_.planner = &trace_->add_lane(group, "planner", "plan");
  lanes_.upload_thread = &trace_->add_lane(group, "upload", "upload");
  lanes_.copies = &trace_->add_lane(group, "copies", "copy");
  if (!conversions.empty()) lanes_.conversions = &trace_->add_lane(group, "conversions", "convert");
  lanes_.trainer = &trace_->add_lane(group, "trainer", "hand out");
  lanes_.free_slots = &trace_->add_lane(group, "free slots");
  lanes_.ready_batches = &trace_->add_lane(group, "ready batches");
  lanes_.active_workers = &trace_->add_lane(group, "active workers");
}

void RunMeter::begin(Clock::time_point now, WorkerFigures base) {
  returned_ = now;
  levels_.restart(now);
  base_ = std::move(base);
}

std::pair<RunMeter, RunMeter::Clock::time_point> RunMeter::take(WorkerFigures base) {
  std::pair before(*this, Clock::now());
  restart(before.second, std::move(base));
  return before;
}

void RunMeter::restart(Clock::time_point now, WorkerFigures base) {
  begin(std::max(returned_, now), std::move(base));
  levels_.restart(now);
  since_ = now;
  batches_ = 0;
  samples_ = 0;
  starting_ = first_batch_seconds_ == 0;
  start_stall_ = {};
  copied_bytes_ = 0;
  stall_.clear();
  ahead_.clear();
  trainer_.clear();
  micro_batch_waits_ = {};
  timed_out_ = {};
  clear(copies_);
  for (StreamWorks& works : conversions_) clear(works);
}

void RunMeter::clear(StreamWorks& works) {
  works.each.clear();
  works.waits_seconds = 0;
}

void RunMeter::Levels::restart(Clock::time_point now) {
  for (TimeWeightedMean* level : {&free_slots, &ready_batches, &active_workers, &no_slot, &no_plan})
    level->restart(now);
}

void RunMeter::add(Trace::Lane* lane, const char* name, Clock::time_point begin,
                   Clock::time_point end, std::uint64_t batch) {
  if (lane != nullptr && end > begin) lane->add(name, begin, end, batch);
}

void RunMeter::set(Trace::Lane* lane, TimeWeightedMean& level, Clock::time_point now,
                   double value) {
  if (level.value() == value) return;
  level.set(now, value);
  if (lane != nullptr) lane->set(now, static_cast<std::int64_t>(value));
}

void RunMeter::note(Clock::time_point now, const QueueState& state) {
  set(lanes_.free_slots, levels_.free_slots, now, static_cast<double>(state.free_slots));
  set(lanes_.ready_batches, levels_.ready_batches, now, static_cast<double>(state.ready_batches));
  set(nullptr, levels_.no_slot, now, state.nothing_to_begin && state.free_slots == 0 ? 1 : 0);
  set(nullptr, levels_.no_plan, now, state.nothing_to_begin && state.free_slots > 0 ? 1 : 0);
}

void RunMeter::uploaded(Clock::time_point begin, Clock::time_point end, std::uint64_t batch,
                        std::size_t bytes) {
  if (lanes_.upload_thread != nullptr) lanes_.upload_thread->set_current_thread();
  add(lanes_.upload_thread, "upload", begin, end, batch);
  copied_bytes_ += bytes;
}

void RunMeter::add(StreamWorks& works, Trace::Lane* lane, const StreamWork& work) {
  works.timed = true;
  if (work.end <= since_) return;
  const Clock::time_point begin = std::max(work.begin, since_);
  add(lane, works.span, begin, work.end, work.batch);
  works.each.add(work.end - begin);
  // Time in which the stream was idle and the micro-batch available: it waited for its destination
  // slot.
  works.waits_seconds +=
      std::max(0.0, seconds_of(begin - std::max({work.available_at, works.last_end, since_})));
  works.last_end = std::max(works.last_end, work.end);
}

void RunMeter::handed_out(const HandOut& call) {
  const Clock::time_point asked = call.asked - std::exchange(timed_out_, {});
  starting_ = starting_ && batches_ == 0;
  ++batches_;
  samples_ += call.samples;
  if (lanes_.trainer != nullptr) lanes_.trainer->set_current_thread();
  if (first_batch_seconds_ == 0) first_batch_seconds_ = seconds_of(call.got - started_);
  if (asked > returned_)
    trainer_.add(asked - returned_ - std::min(micro_batch_waits_, asked - returned_));
  micro_batch_waits_ = {};
  returned_ = std::max(returned_, call.got);

  // From `asked` to `planned_at`, no host slot was free: the trainer was ahead. The rest is a
  // stall, except the wait for a device slot.
  const auto clip = [&](Clock::time_point time) { return std::clamp(time, asked, call.got); };
  const Clock::time_point planned = clip(call.planned_at);
  const Clock::time_point wait_begin = std::max(planned, clip(call.slot_wait_begin));
  const Clock::time_point wait_end = std::max(wait_begin, clip(call.slot_wait_end));
  add(lanes_.trainer, "ahead", asked, planned, call.batch);
  add(lanes_.trainer, "stall", planned, wait_begin, call.batch);
  add(lanes_.trainer, "ahead", wait_begin, wait_end, call.batch);
  add(lanes_.trainer, "stall", wait_end, call.got, call.batch);
  const std::chrono::nanoseconds waited_ahead = (planned - asked) + (wait_end - wait_begin);
  const std::chrono::nanoseconds waited_stall = call.got - asked - waited_ahead;
  ahead_.add(waited_ahead);
  add_stall(waited_stall);
}

void RunMeter::waited_for_micro_batch(Clock::time_point asked, Clock::time_point got,
                                      std::uint64_t batch) {
  add(lanes_.trainer, "stall", asked, got, batch);
  add_stall(got - asked);
  micro_batch_waits_ += got - asked;
}

void RunMeter::add_stall(std::chrono::nanoseconds waited) {
  stall_.add(waited);
  stalled_ += waited;
  if (starting_) start_stall_ += waited;
}

void RunMeter::fill(Report& report, const WorkerFigures& sample_workers,
                    Clock::time_point now) const {
  report.seconds = seconds_of(now - since_);
  report.batches = batches_;
  report.samples = samples_;
  report.copied_bytes = copied_bytes_;
  report.stall = stall_.summary();
  report.start_stall_ms = 1e3 * seconds_of(start_stall_);
  report.ahead = ahead_.summary();
  report.first_batch_seconds = first_batch_seconds_;
  report.active_workers = levels_.active_workers.mean(now);
  report.ready_batches = levels_.ready_batches.mean(now);
  report.free_slots = levels_.free_slots.mean(now);
  fill_workers(report, now);
  if (sample_workers.stream_busy)
    report.stages.push_back(stream_stage(*sample_workers.stream_busy, report.seconds));
  if (copies_.timed) report.stages.push_back(stage_of(copies_, report.seconds));
  for (const StreamWorks& works : conversions_)
    if (works.timed) report.stages.push_back(stage_of(works, report.seconds));
  report.stages.push_back(trainer_stage(report.seconds));
  const double active_seconds = report.active_workers * report.seconds;
  if (sample_workers.delay && base_.delay && active_seconds > 0)
    report.worker_delay =
        std::min(seconds_of(*sample_workers.delay - *base_.delay) / active_seconds, 1.0);
}

/// A worker runs its stages one after the other, so all its stages wait at the same time. The
/// workers' time without work is divided between waiting for a slot and waiting for a plan. The
/// proportion is that of the times in which the queues had no slot and no plan.
void RunMeter::fill_workers(Report& report, Clock::time_point now) const {
  double busy = 0;
  for (const StageReport& stage : report.stages) busy += stage.busy_seconds;
  const double all = report.active_workers * report.seconds;
  const double waiting = std::max(0.0, all - busy);
  const double no_slot = levels_.no_slot.sum(now);
  const double no_plan = levels_.no_plan.sum(now);
  const double slot_share = no_slot + no_plan > 0 ? no_slot / (no_slot + no_plan) : 0;
  for (StageReport& stage : report.stages) {
    stage.lanes = report.active_workers;
    stage.waiting_input_seconds = waiting * (1 - slot_share);
    stage.waiting_output_seconds = waiting * slot_share;
    stage.occupancy = all > 0 ? stage.busy_seconds / all : 0;
    stage.share = busy > 0 ? stage.busy_seconds / busy : 0;
  }
  report.worker_utilization = all > 0 ? busy / all : 0;
}

StageReport RunMeter::stage_of(const StreamWorks& works, double seconds) {
  StageReport stage{
      .name = works.name, .lanes = 1, .each = works.each.summary(), .on_device = true};
  stage.busy_seconds = stage.each.total_ms / 1e3;
  stage.waiting_output_seconds = works.waits_seconds;
  stage.waiting_input_seconds = std::max(0.0, seconds - stage.busy_seconds - works.waits_seconds);
  stage.occupancy = seconds > 0 ? stage.busy_seconds / seconds : 0;
  return stage;
}

StageReport RunMeter::stream_stage(std::chrono::nanoseconds busy, double seconds) const {
  StageReport stage{.name = "stream", .lanes = 1};
  stage.busy_seconds = seconds_of(busy - base_.stream_busy.value_or(std::chrono::nanoseconds(0)));
  stage.waiting_output_seconds = std::max(0.0, seconds - stage.busy_seconds);
  stage.occupancy = seconds > 0 ? std::min(stage.busy_seconds / seconds, 1.0) : 0;
  return stage;
}

StageReport RunMeter::trainer_stage(double seconds) const {
  StageReport stage{.name = "trainer", .lanes = 1, .each = trainer_.summary()};
  stage.busy_seconds = stage.each.total_ms / 1e3;
  stage.waiting_input_seconds = stall_.summary().total_ms / 1e3;
  stage.waiting_output_seconds = ahead_.summary().total_ms / 1e3;
  stage.occupancy = seconds > 0 ? stage.busy_seconds / seconds : 0;
  return stage;
}

}  // namespace millrace
