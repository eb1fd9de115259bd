// SPDX-License-Identifier: Apache-2.0
#include "pipeline/samples/sample_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "dataset/joined_dataset.h"
#include "device/profiler_range.h"

namespace millrace {
namespace {

constexpr unsigned max_replacements = 16;

}  // namespace

WorkerSource::~WorkerSource() {
  for (SampleLane& lane : lanes()) leave(lane);
}

void WorkerSource::leave(SampleLane& lane) {
  lane.subject.reset();
  lane.task.reset();
  lane.since_ns.store(0, std::memory_order_relaxed);
}

TransformWorker* WorkerSource::transform() {
  if (worker_.transform == nullptr) {
    const SampleLane* const first = find_lane();
    if (first == nullptr) return nullptr;
    try {
      worker_.transform = maker_.transform_->make_worker();
      if (worker_.transform == nullptr)
        throw Error(
            ErrorCode::transform,
            "the transform's make_worker() returned null; it must return a worker or throw");
    } catch (...) {
      maker_.rethrow_with_context(*first);
    }
    if (worker_.lane != nullptr) worker_.lane->set_current_thread();
    now_ = Clock::now();  // the time to make the worker does not count as reading
  }
  return worker_.transform.get();
}

SampleTask* WorkerSource::next() {
  while (SampleLane* lane = find_lane()) {
    try {
      return &give(*lane, read(*lane, begin()));
    } catch (...) {
      judge(*lane, bad_by_exception(*lane));
    }
  }
  return nullptr;
}

/// Returns a lane whose bad record must be replaced, otherwise a free lane with the next task.
/// Returns nullptr if no task is left.
WorkerSource::SampleLane* WorkerSource::find_lane() {
  for (SampleLane& lane : lanes())
    if (lane.task && !lane.subject) return &lane;
  for (SampleLane& lane : lanes()) {
    if (lane.task) continue;
    lane.task = tasks_.next();
    if (!lane.task) return nullptr;
    for (std::size_t field = 0; field < lane.fields.size(); ++field)
      if (field != maker_.layout_.packed_field())
        lane.fields[field].data = maker_.layout_.place(lane.task->slot, field, lane.task->place);
    if (lane.packed)
      lane.packed->begin(*lane.task->room,
                         maker_.layout_.packed_room(lane.task->slot, lane.task->place));
    lane.made = {lane.task->record, true};
    lane.last_bad.reset();
    lane.bad = 0;
    lane.record.store(lane.made.record, std::memory_order_relaxed);
    lane.since_ns.store(now_.time_since_epoch().count(), std::memory_order_relaxed);
    return &lane;
  }
  return nullptr;
}

/// Returns the time at which the next sample begins. Without interleaving, this is the time at
/// which the last sample ended. The clock is not read again, because that takes as long as some
/// samples.
WorkerSource::Clock::time_point WorkerSource::begin() {
  if (maker_.at_once_ > 1) now_ = Clock::now();
  const bool alone = std::ranges::none_of(
      lanes(), [](const SampleLane& lane) { return lane.subject.has_value(); });
  if (alone) drawn_ = now_;
  return now_;
}

Record WorkerSource::read(SampleLane& lane, Clock::time_point begin) {
  lane.record.store(lane.made.record, std::memory_order_relaxed);
  lane.stage.store(SampleMaker::reading, std::memory_order_relaxed);
  lane.since_ns.store(begin.time_since_epoch().count(), std::memory_order_relaxed);
  const ProfilerRange range(maker_.profiler_, "read", lane.task->batch);
  if (lane.reader == nullptr) lane.reader = checked_reader(*maker_.dataset_);
  const Record record = lane.reader->read(lane.made.record);
  now_ = Clock::now();
  std::uint64_t bytes = 0;
  for (const RecordField& field : record.fields()) bytes += field.bytes.size();
  worker_.encoded_bytes.add(bytes);
  maker_.note_stage(*lane.task, 0, drawn_, now_ - begin, lane.made.record, worker_);
  drawn_ += now_ - begin;
  return record;
}

SampleTask& WorkerSource::give(SampleLane& lane, const Record& record) {
  std::ranges::fill(lane.stage_ns, 0);
  if (lane.packed) lane.packed->make(lane.task->again);
  lane.context.set_position(lane.task->position);
  if (lane.poison)
    lane.poison->fill(lane.fields, lane.task->position + (std::uint64_t{lane.bad} << 56));
  lane.subject.emplace(record, Random(maker_.seed_, lane.task->position), lane.context,
                       maker_.transform_->spec(), lane.fields, lane.stage_ns, lane.made.record,
                       lane.task->batch, now_);
  return lane.subject->task;
}

WorkerSource::SampleLane& WorkerSource::lane_of(const SampleTask& task) {
  for (SampleLane& lane : lanes())
    if (lane.subject && &lane.subject->task == &task) return lane;
  throw Error(ErrorCode::transform,
              "the transform finished a sample that its worker was not given");
}

void WorkerSource::made(SampleTask& task, const Status& status) { end(lane_of(task), status); }

void WorkerSource::failed(SampleTask& task) {
  SampleLane& lane = lane_of(task);
  const Status lost = intact(lane);
  end(lane, lost.is_ok() ? bad_by_exception(lane) : lost);
}

/// Calls `DatasetReader::intact`; adds the record's name to its exception.
Status WorkerSource::intact(SampleLane& lane) {
  try {
    return lane.reader->intact();
  } catch (...) {
    lane.stage.store(SampleMaker::reading, std::memory_order_relaxed);
    maker_.rethrow_with_context(lane);
  }
}

/// Whether the transform asked for a field that the record lacks or has in another size. With
/// `BadRecords::fail` returns false, so that the error ends the run unchanged.
bool WorkerSource::misses_field(const SampleLane& lane, const Error& error) const {
  return maker_.policy_ != BadRecords::fail && lane.subject && error.stage().empty() &&
         error.record() == lane.subject->record.index() &&
         (error.code() == ErrorCode::not_found || error.code() == ErrorCode::corrupt);
}

/// Throws `Error` if the transform left bytes of the sample unwritten.
void WorkerSource::check_written(SampleLane& lane) {
  const std::optional<std::string> found = lane.poison->unwritten(lane.fields);
  if (!found) return;
  const std::uint64_t index = lane.made.record;
  const std::string& stage = maker_.stages_[1];
  throw Error(ErrorCode::transform,
              stage + " of " + record_name(*maker_.dataset_, index) +
                  " failed: the transform did not write " + *found +
                  ", where an earlier sample's bytes would be (found by debug.poison_slots)",
              stage, index);
}

/// Returns the status of a bad record, or rethrows the exception being handled, which ends the run.
Status WorkerSource::bad_by_exception(const SampleLane& lane) {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_record || misses_field(lane, error))
      return Status::bad(error.reason());
    maker_.rethrow_with_context(lane);
  } catch (...) {
    maker_.rethrow_with_context(lane);
  }
}

void WorkerSource::end(SampleLane& lane, const Status& status) {
  // If mapped bytes were lost meanwhile, the transform has read zeros in their place: its result
  // does not count.
  const Status lost = intact(lane);
  const char* decoder_name = nullptr;
  if (!lane.context.hint_failure().empty())
    maker_.note_failure("stored_hint()", "stored_hint() threw: " + lane.context.hint_failure());
  if (lost.is_ok() && status.is_ok()) {
    if (lane.poison) check_written(lane);
    lane.context.store();
    decoder_name = lane.subject->sample.decoder_name();
  }
  note_stages(lane);
  if (lost.is_ok() && status.is_ok() && !lane.task->again) {
    const std::uint64_t ns = std::reduce(lane.stage_ns.begin(), lane.stage_ns.end());
    const auto source = static_cast<std::size_t>(lane.context.source());
    worker_.made_from[source].add(1);
    worker_.made_from_ns[source].add(ns);
    if (decoder_name != nullptr) {
      worker_.decoders.add(decoder_name);
      worker_.decoder_ns.add(decoder_name, ns);
    }
  }
  lane.subject.reset();
  judge(lane, lost.is_ok() ? status : lost);
}

void WorkerSource::note_stages(SampleLane& lane) {
  now_ = SampleContext::finish(lane.subject->sample);
  for (std::size_t stage = 0; stage < lane.stage_ns.size(); ++stage) {
    const std::chrono::nanoseconds taken(lane.stage_ns[stage]);
    maker_.note_stage(*lane.task, stage + 1, drawn_, taken, lane.made.record, worker_);
    drawn_ += taken;  // a stage that was entered several times is drawn as one span
  }
}

/// Ends a task. For a bad record, applies the policy: throws, marks the sample, or draws a
/// replacement.
void WorkerSource::judge(SampleLane& lane, const Status& status) {
  if (!status.is_ok()) {
    const std::uint64_t index = lane.made.record;
    const bool known_bad = lane.task->known_bad || (lane.task->again && lane.last_bad == index);
    if (!known_bad) maker_.note_bad(index, status.reason());
    lane.last_bad = index;
    const std::string what =
        record_name(*maker_.dataset_, index, status.reason()) + " is bad: " + status.reason();
    const auto give_up = [&](const std::string& why) {
      throw Error(ErrorCode::bad_record, what + why,
                  maker_.stage_name(lane.stage.load(std::memory_order_relaxed)), index,
                  status.reason());
    };
    if (maker_.policy_ == BadRecords::fail) give_up("");
    if (maker_.policy_ != BadRecords::mark) {
      if (++lane.bad > max_replacements)
        give_up("; so were " + std::to_string(max_replacements) +
                " records before it that were drawn to replace each other");
      Random random(maker_.seed_, lane.task->position, lane.bad);
      const Sampler& sampler = *lane.task->sampler;
      lane.made.record =
          maker_.windows_ != nullptr
              ? maker_.windows_->replacement(random, index)
              : sampler.replacement(random, lane.task->position / sampler.epoch_size());
      now_ = Clock::now();  // the time of the failed attempt counts in no stage
      return;
    }
    if (lane.packed) lane.packed->make(lane.task->again);
    for (const Tensor& field : lane.fields) std::memset(field.data, 0, field.bytes());
    lane.made.valid = false;
  }
  if (lane.made.valid) maker_.clear_tails(lane.task->slot, lane.task->place);
  maker_.end_packed(lane);
  if (!lane.task->again) worker_.samples.add(1);
  tasks_.made(*lane.task, lane.made);
  leave(lane);
}

}  // namespace millrace
