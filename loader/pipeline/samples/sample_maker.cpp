// SPDX-License-Identifier: Apache-2.0
#include "pipeline/samples/sample_maker.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "base/exception_text.h"
#include "dataset/joined_dataset.h"
#include "device/profiler_range.h"
#include "pipeline/samples/sample_source.h"

namespace millrace {
namespace {

constexpr std::size_t max_listed = 100;
/// Stream of a batch's random numbers. Samples use streams 0 to 17.
constexpr std::uint32_t batch_stream = 18;

std::int64_t ns_of(std::chrono::steady_clock::time_point time) {
  return time.time_since_epoch().count();
}
std::int64_t now_ns() { return ns_of(std::chrono::steady_clock::now()); }

}  // namespace

SampleMaker::SampleMaker(Setup setup)
    : dataset_(std::move(setup.dataset)),
      transform_(std::move(setup.transform)),
      layout_(std::move(setup.layout)),
      seed_(setup.seed),
      policy_(setup.policy),
      profiler_(setup.profiler),
      caches_(std::move(setup.caches)),
      windows_(std::move(setup.windows)),
      batch_transform_(std::move(setup.batch_transform)),
      // A thread's profiler ranges are nested, so two samples cannot be interleaved.
      at_once_(
          profiler_ != nullptr ? 1 : std::clamp<std::size_t>(transform_->samples_at_once(), 1, 2)) {
  stages_ = transform_->stages();
  if (stages_.empty())
    throw Error(ErrorCode::invalid_argument,
                "the transform names no stages; it needs at least one");
  stages_.insert(stages_.begin(), "read");
  const std::size_t of_samples = stages_.size() - 1;
  const std::size_t own_fields = transform_->spec().fields().size();
  for (const FieldSpec& field : std::span(layout_.spec().fields()).subspan(own_fields))
    if (field.name != "index" && field.name != "valid") ++added_fields_;
  if (batch_transform_ != nullptr) stages_.push_back(batch_transform_->stage());
  Trace* const trace = setup.trace;
  if (trace != nullptr)
    for (const std::string& stage : stages_) span_names_.push_back(trace->keep(stage));
  if (profiler_ != nullptr)
    for (const std::string& stage : stages_) range_names_.push_back(stage.c_str());
  const bool has_hints = dataset_->has_stored_hints() || caches_.hints != nullptr;
  SampleContext::Shared shared{.kept_hints = caches_.hints.get(),
                               .stored_hints = has_hints ? dataset_.get() : nullptr,
                               .cache = caches_.cache.get(),
                               .recoded = caches_.recoded.get(),
                               .profiler = profiler_};
  if (profiler_ != nullptr) shared.stage_names = std::span(range_names_).subspan(1);
  // If there is a packed field, `make_again` has one more worker.
  const unsigned more = layout_.packed_field() ? 1 : 0;
  for (unsigned number = 0; number < setup.workers + more; ++number) {
    auto worker = std::make_unique<Worker>();
    for (SampleLane& lane : worker->lanes) {
      for (const FieldSpec& field : transform_->spec().fields())
        lane.fields.push_back({nullptr, field.dtype, field.shape});
      lane.stage_ns.resize(of_samples);
      lane.context.share(shared);
      if (setup.poison) lane.poison = std::make_unique<SlotPoison>(transform_->spec());
      if (const auto field = layout_.packed_field(); field && &lane < &worker->lanes[at_once_]) {
        lane.packed.emplace(lane.fields[*field].bytes());
        lane.context.set_packed(&*lane.packed);
        lane.fields[*field].data = lane.packed->field();
      }
    }
    worker->stages = std::vector<Histogram>(stages_.size());
    if (trace != nullptr && number < setup.workers)
      worker->lane =
          &trace->add_lane(setup.trace_group, "worker " + std::to_string(number), "make");
    workers_.push_back(std::move(worker));
  }
}

void SampleMaker::make(Tasks& tasks, unsigned number) {
  WorkerSource source(*this, *workers_.at(number), tasks);
  TransformWorker* const transform = source.transform();
  if (transform == nullptr) return;
  try {
    transform->make_interleaved(source);
  } catch (const Error&) {
    throw;
  } catch (...) {
    throw Error(
        ErrorCode::transform,
        stages_[1] + " failed: the transform's make_interleaved() threw: " + text_of_exception(),
        stages_[1]);
  }
}

const std::byte* SampleMaker::make_again(Tasks& tasks) {
  {
    MutexLock lock(mutex_);
    ++made_again_;
  }
  make(tasks, again_worker());
  return workers_.back()->lanes.front().packed->field();
}

void SampleMaker::finish_batch(const BatchTask& task, unsigned number) {
  Worker& worker = *workers_.at(number);
  const Clock::time_point begin = Clock::now();
  SampleLane& lane = worker.lanes.front();
  lane.record.store(task.batch, std::memory_order_relaxed);
  lane.stage.store(stages_.size() - 2, std::memory_order_relaxed);
  lane.since_ns.store(ns_of(begin), std::memory_order_relaxed);
  const struct Unmark {
    ~Unmark() { since.store(0, std::memory_order_relaxed); }
    std::atomic<std::int64_t>& since;
  } unmark{lane.since_ns};
  const ProfilerRange range(profiler_, range_names_.empty() ? "" : range_names_.back(), task.batch);
  const std::size_t samples = task.indices.size();
  const SampleSpec& spec = layout_.spec();
  std::vector<Tensor> fields;
  for (std::size_t field = 0; field < spec.fields().size(); ++field)
    fields.push_back(layout_.field(task.slot, field, 0, samples));
  // Fields that the batch transform adds must not contain bytes of the slot's last batch.
  const std::size_t added = lane.fields.size();
  for (std::size_t field = added; field < added + added_fields_; ++field)
    std::memset(fields[field].data, 0, fields[field].bytes());
  try {
    MadeBatch batch(spec, std::move(fields), task.indices, task.valid);
    Random random(seed_, task.position, batch_stream);
    batch_transform_->run(batch, random);
  } catch (...) {
    rethrow_of_batch(task.batch);
  }
  for (std::size_t sample = 0; sample < samples; ++sample) clear_tails(task.slot, sample);
  note_stage({task.slot, 0, task.position, task.indices.front(), task.batch, nullptr, nullptr},
             stages_.size() - 1, begin, Clock::now() - begin, task.indices.front(), worker);
}

void SampleMaker::rethrow_of_batch(std::uint64_t batch) const {
  const std::string& stage = stages_.back();
  const std::string where = stage + " of batch " + std::to_string(batch) + " failed: ";
  try {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), where + error.what(), stage);
  } catch (...) {
    throw Error(ErrorCode::transform, where + text_of_exception(), stage);
  }
}

void SampleMaker::end_packed(SampleLane& lane) {
  if (!lane.packed || lane.task->again) return;
  const std::uint32_t offset = lane.packed->end();
  std::memcpy(layout_.packed_offset(lane.task->slot, lane.task->place), &offset, sizeof offset);
}

void SampleMaker::clear_tails(std::byte* slot, std::size_t place) {
  const SampleSpec& spec = transform_->spec();
  for (std::size_t field = 0; field < spec.fields().size(); ++field) {
    if (!spec.fields()[field].variable) continue;
    std::uint32_t length = 0;
    std::memcpy(&length, layout_.sample(slot, spec.length_field_of(field), place).data,
                sizeof length);
    const Tensor whole = layout_.sample(slot, field, place);
    const std::size_t used = whole.bytes() / whole.shape[0] * length;
    std::memset(static_cast<std::byte*>(whole.data) + used, 0, whole.bytes() - used);
  }
}

void SampleMaker::note_bad(std::uint64_t index, const std::string& reason) {
  std::string failure;
  std::string key = key_or_number(*dataset_, index, &failure);
  if (!failure.empty())
    note_failure("key()", "key() threw for record " + std::to_string(index) + ": " + failure);
  MutexLock lock(mutex_);
  ++bad_records_;
  if (bad_record_list_.size() < max_listed)
    bad_record_list_.push_back({index, std::move(key), reason});
}

void SampleMaker::note_failure(const char* call, const std::string& what) {
  MutexLock lock(mutex_);
  failures_.try_emplace(call, what);
}

std::vector<std::string> SampleMaker::warnings() const {
  std::vector<std::string> warnings;
  MutexLock lock(mutex_);
  for (const auto& [call, what] : failures_)
    warnings.push_back(dataset_->name() + ": " + what + "; the run goes on without it");
  if (made_again_ > 0)
    warnings.push_back(dataset_->name() + ": the device could not make " +
                       std::to_string(made_again_) + " samples, which were made again on the host");
  return warnings;
}

void SampleMaker::rethrow_with_context(const SampleLane& lane) {
  const std::uint64_t index = lane.made.record;
  const std::string stage = stage_name(lane.stage.load(std::memory_order_relaxed));
  const std::string where = stage + " of " + record_name(*dataset_, index) + " failed: ";
  const ErrorCode otherwise = stage == stages_.front() ? ErrorCode::io : ErrorCode::transform;
  try {
    throw;
  } catch (const Error& error) {
    throw error.with_context(where, stage, index);
  } catch (...) {
    throw Error(otherwise, where + text_of_exception(), stage, index);
  }
}

std::string SampleMaker::stage_name(std::size_t stage) const {
  if (stage == reading) return stages_.front();
  return stage + 1 < stages_.size() ? stages_[stage + 1] : stages_.back();
}

WorkCounts SampleMaker::counts() const {
  static_assert(std::tuple_size_v<decltype(WorkCounts::made_from)> == SampleContext::source_count);
  WorkCounts counts;
  counts.stages.resize(stages_.size());
  for (const auto& worker : workers_) {
    counts.samples += worker->samples.value();
    counts.encoded_bytes += worker->encoded_bytes.value();
    for (std::size_t source = 0; source < counts.made_from.size(); ++source) {
      counts.made_from[source] += worker->made_from[source].value();
      counts.made_from_ns[source] += worker->made_from_ns[source].value();
    }
    worker->decoders.add_to(counts.decoders);
    worker->decoder_ns.add_to(counts.decoder_ns);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      worker->stages[stage].add_to(counts.stages[stage]);
  }
  return counts;
}

CacheReport SampleMaker::cache_report(const WorkCounts& now, const WorkCounts& base) const {
  const auto of = [&](SampleContext::Source source) {
    const auto number = static_cast<std::size_t>(source);
    return SampleTime{
        now.made_from[number] - base.made_from[number],
        static_cast<double>(now.made_from_ns[number] - base.made_from_ns[number]) / 1e9};
  };
  using Source = SampleContext::Source;
  const SampleTime hits = of(Source::cache);
  CacheReport report{.hits = hits.samples,
                     .hit_seconds = hits.seconds,
                     .recoded = of(Source::recoded_now),
                     .hinted = of(Source::hinted_record),
                     .plain = of(Source::record)};
  if (caches_.has_cache())
    report.misses = report.recoded.samples + report.hinted.samples + report.plain.samples;
  return report;
}

std::uint64_t SampleMaker::samples_by(unsigned first, unsigned workers) const {
  std::uint64_t samples = 0;
  for (unsigned number = first; number < first + workers; ++number)
    samples += workers_.at(number)->samples.value();
  return samples;
}

std::chrono::nanoseconds SampleMaker::busy_of(unsigned first, unsigned workers) const {
  std::uint64_t busy_ns = 0;
  for (unsigned number = first; number < first + workers; ++number)
    busy_ns += workers_.at(number)->busy_ns.value();
  return std::chrono::nanoseconds(busy_ns);
}

std::size_t SampleMaker::hint_bytes() const {
  return caches_.hints != nullptr ? caches_.hints->bytes() : 0;
}

std::size_t SampleMaker::cache_bytes() const {
  if (caches_.recoded != nullptr) return caches_.recoded->bytes();
  return caches_.cache != nullptr ? caches_.cache->bytes() : 0;
}

void SampleMaker::fill_bad_records(Report& report) const {
  MutexLock lock(mutex_);
  report.bad_records = bad_records_;
  report.bad_record_list = bad_record_list_;
}

std::optional<SampleMaker::Running> SampleMaker::longest_running() const {
  const SampleLane* longest = nullptr;
  std::int64_t since = now_ns();
  for (const auto& worker : workers_) {
    for (const SampleLane& lane : worker->lanes) {
      const std::int64_t begun = lane.since_ns.load(std::memory_order_relaxed);
      if (begun == 0 || begun >= since ||
          lane.stage.load(std::memory_order_relaxed) == SampleContext::paused_stage)
        continue;
      since = begun;
      longest = &lane;
    }
  }
  if (longest == nullptr) return std::nullopt;
  const std::size_t number = longest->stage.load(std::memory_order_relaxed);
  const std::string stage = stage_name(number);
  const bool of_batch = batch_transform_ != nullptr && number == stages_.size() - 2;
  return Running{stage, stage + (of_batch ? " of batch " : " of record ") +
                            std::to_string(longest->record.load(std::memory_order_relaxed)) +
                            " has been running for " +
                            std::to_string((now_ns() - since) / 1'000'000) + " ms"};
}

}  // namespace millrace
