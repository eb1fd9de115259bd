// SPDX-License-Identifier: Apache-2.0
#include "pipeline/samples/sample_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "dataset/joined_dataset.h"
#include "device/profiler_range.h"

namespace millrace {
namespace {

constexpr unsigned most_replacements = 16;

}  // namespace

WorkerSource::~WorkerSource() {
  for (Place& place : places()) leave(place);
}

void WorkerSource::leave(Place& place) {
  place.subject.reset();
  place.task.reset();
  place.since_ns.store(0, std::memory_order_relaxed);
}

TransformWorker* WorkerSource::transform() {
  if (worker_.transform == nullptr) {
    const Place* const first = find_place();
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
    if (worker_.lane != nullptr) worker_.lane->runs_here();
    now_ = Clock::now();  // making the worker does not count as reading
  }
  return worker_.transform.get();
}

SampleTask* WorkerSource::next() {
  while (Place* place = find_place()) {
    try {
      return &give(*place, read(*place, begin()));
    } catch (...) {
      judge(*place, bad_by_exception(*place));
    }
  }
  return nullptr;
}

/// Returns the state of a bad record to be replaced, else one with the next task. Returns nullptr
/// if no task is left.
WorkerSource::Place* WorkerSource::find_place() {
  for (Place& place : places())
    if (place.task && !place.subject) return &place;
  for (Place& place : places()) {
    if (place.task) continue;
    place.task = tasks_.next();
    if (!place.task) return nullptr;
    for (std::size_t field = 0; field < place.fields.size(); ++field)
      place.fields[field].data = maker_.layout_.place(place.task->slot, field, place.task->place);
    place.made = {place.task->record, true};
    place.bad = 0;
    place.record.store(place.made.record, std::memory_order_relaxed);
    place.since_ns.store(now_.time_since_epoch().count(), std::memory_order_relaxed);
    return &place;
  }
  return nullptr;
}

/// Returns the next sample's begin. Without interleaving, a sample begins where the last one ended:
/// reading the clock takes as long as some samples do.
WorkerSource::Clock::time_point WorkerSource::begin() {
  if (maker_.at_once_ > 1) now_ = Clock::now();
  const bool alone =
      std::ranges::none_of(places(), [](const Place& place) { return place.subject.has_value(); });
  if (alone) drawn_ = now_;
  return now_;
}

Record WorkerSource::read(Place& place, Clock::time_point begin) {
  place.record.store(place.made.record, std::memory_order_relaxed);
  place.stage.store(SampleMaker::reading, std::memory_order_relaxed);
  place.since_ns.store(begin.time_since_epoch().count(), std::memory_order_relaxed);
  const ProfilerRange range(maker_.profiler_, "read", place.task->batch);
  if (place.reader == nullptr) place.reader = checked_reader(*maker_.dataset_);
  const Record record = place.reader->read(place.made.record);
  now_ = Clock::now();
  std::uint64_t bytes = 0;
  for (const RecordField& field : record.fields()) bytes += field.bytes.size();
  worker_.encoded_bytes.add(bytes);
  maker_.note_stage(*place.task, 0, drawn_, now_ - begin, place.made.record, worker_);
  drawn_ += now_ - begin;
  return record;
}

SampleTask& WorkerSource::give(Place& place, const Record& record) {
  std::ranges::fill(place.stage_ns, 0);
  if (place.poison)
    place.poison->fill(place.fields, place.task->position + (std::uint64_t{place.bad} << 56));
  place.subject.emplace(record, Random(maker_.seed_, place.task->position),
                        maker_.transform_->spec(), place.fields, place.stage_ns, &place.stage,
                        now_);
  Sample& sample = place.subject->sample;
  if (maker_.profiler_ != nullptr)
    sample.show(*maker_.profiler_, std::span(maker_.range_names_).subspan(1), place.task->batch);
  if (maker_.kept_.notes != nullptr || maker_.has_stored_notes_)
    sample.use_notes(maker_.kept_.notes.get(), *maker_.dataset_, place.made.record, place.notes);
  if (maker_.kept_.cache != nullptr) sample.use_cache(*maker_.kept_.cache, place.made.record);
  return place.subject->task;
}

WorkerSource::Place& WorkerSource::place_of(const SampleTask& task) {
  for (Place& place : places())
    if (place.subject && &place.subject->task == &task) return place;
  throw Error(ErrorCode::transform,
              "the transform finished a sample that its worker was not given");
}

void WorkerSource::made(SampleTask& task, const Status& status) { end(place_of(task), status); }

void WorkerSource::failed(SampleTask& task) {
  Place& place = place_of(task);
  const Status lost = intact(place);
  end(place, lost.is_ok() ? bad_by_exception(place) : lost);
}

/// Calls `DatasetReader::intact`; adds the record's name to its exception.
Status WorkerSource::intact(Place& place) {
  try {
    return place.reader->intact();
  } catch (...) {
    place.stage.store(SampleMaker::reading, std::memory_order_relaxed);
    maker_.rethrow_with_context(place);
  }
}

/// Whether the transform asked the record for a field that this record does not have, or has in
/// another size. With `BadRecords::fail` returns false: the error ends the run unchanged.
bool WorkerSource::misses_field(const Place& place, const Error& error) const {
  return maker_.policy_ != BadRecords::fail && place.subject && error.stage().empty() &&
         error.record() == place.subject->record.index() &&
         (error.code() == ErrorCode::not_found || error.code() == ErrorCode::corrupt);
}

/// Throws `Error` if the transform left bytes of the sample unwritten.
void WorkerSource::check_written(Place& place) {
  const std::optional<std::string> found = place.poison->unwritten(place.fields);
  if (!found) return;
  const std::uint64_t index = place.made.record;
  const std::string& stage = maker_.stages_[1];
  throw Error(ErrorCode::transform,
              stage + " of " + record_name(*maker_.dataset_, index) +
                  " failed: the transform did not write " + *found +
                  ", where an earlier sample's bytes would be (found by debug.poison_slots)",
              stage, index);
}

/// Returns the status of a bad record, or rethrows the exception being handled, which ends the run.
Status WorkerSource::bad_by_exception(const Place& place) {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_record || misses_field(place, error))
      return Status::bad(error.reason());
    maker_.rethrow_with_context(place);
  } catch (...) {
    maker_.rethrow_with_context(place);
  }
}

void WorkerSource::end(Place& place, const Status& status) {
  // If mapped bytes were lost meanwhile, the transform has read zeros in their place: its result
  // does not count.
  const Status lost = intact(place);
  Sample& sample = place.subject->sample;
  const char* way = nullptr;
  if (!place.notes.failure.empty())
    maker_.note_failure("stored_note()", "stored_note() threw: " + place.notes.failure);
  if (lost.is_ok() && status.is_ok()) {
    if (place.poison) check_written(place);
    sample.store_note();
    sample.store_in_cache();
    if (maker_.kept_.cache != nullptr)
      (sample.from_cache() ? worker_.cache_hits : worker_.cache_misses).add(1);
    way = sample.way();
  }
  note_stages(place);
  if (way != nullptr) {
    worker_.ways.add(way);
    worker_.way_ns.add(way, std::reduce(place.stage_ns.begin(), place.stage_ns.end()));
  }
  place.subject.reset();
  judge(place, lost.is_ok() ? status : lost);
}

void WorkerSource::note_stages(Place& place) {
  place.subject->sample.finish();
  now_ = place.subject->sample.finished_at();
  for (std::size_t stage = 0; stage < place.stage_ns.size(); ++stage) {
    const std::chrono::nanoseconds taken(place.stage_ns[stage]);
    maker_.note_stage(*place.task, stage + 1, drawn_, taken, place.made.record, worker_);
    drawn_ += taken;  // a stage that is entered several times becomes one span
  }
}

/// Ends a task. For a bad record, applies the policy: fails, marks the sample, or draws a
/// replacement.
void WorkerSource::judge(Place& place, const Status& status) {
  if (!status.is_ok()) {
    const std::uint64_t index = place.made.record;
    maker_.note_bad(index, status.reason());
    const std::string what =
        record_name(*maker_.dataset_, index, status.reason()) + " is bad: " + status.reason();
    const auto give_up = [&](const std::string& why) {
      throw Error(ErrorCode::bad_record, what + why,
                  maker_.stage_name(place.stage.load(std::memory_order_relaxed)), index,
                  status.reason());
    };
    if (maker_.policy_ == BadRecords::fail) give_up("");
    if (maker_.policy_ != BadRecords::mark) {
      if (++place.bad > most_replacements)
        give_up("; so were " + std::to_string(most_replacements) +
                " records before it that were drawn to replace each other");
      Random random(maker_.seed_, place.task->position, place.bad);
      place.made.record = maker_.sampler_.replacement(random);
      now_ = Clock::now();  // a failed read counts in no stage
      return;
    }
    for (const Tensor& field : place.fields) std::memset(field.data, 0, field.bytes());
    place.made.valid = false;
  }
  if (place.made.valid) maker_.clear_tails(place.task->slot, place.task->place);
  worker_.samples.add(1);
  tasks_.made(*place.task, place.made);
  leave(place);
}

}  // namespace millrace
