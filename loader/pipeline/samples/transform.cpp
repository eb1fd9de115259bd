// SPDX-License-Identifier: Apache-2.0
#include <millrace/device.h>
#include <millrace/transform.h>

#include <algorithm>
#include <cstring>

#include "base/exception_text.h"
#include "dataset/record_hints.h"
#include "dataset/sample_cache.h"

namespace millrace {

Sample::Sample(const SampleSpec& spec, std::span<const Tensor> fields,
               std::span<std::uint64_t> stage_ns, std::atomic<std::size_t>* now_in,
               std::chrono::steady_clock::time_point begin)
    : spec_(&spec), fields_(fields), stage_ns_(stage_ns), now_in_(now_in), since_(begin) {
  clear_lengths();
  note_stage();
}

Sample::Sample(Sample& outer, const SampleSpec& spec, std::span<const Tensor> fields,
               std::size_t first_stage)
    : spec_(&spec), fields_(fields), outer_(&outer), first_stage_(first_stage) {
  clear_lengths();
  enter_stage(0);
}

Sample::~Sample() {
  if (!room_.empty()) cache_->give_back(room_);
  end_range();
}

void Sample::set_length(std::size_t field, std::size_t length) {
  const std::size_t length_field = spec_->length_of(field);
  const FieldSpec& told = spec_->fields()[field];
  if (length > told.shape[0])
    throw Error(ErrorCode::invalid_argument,
                "a sample's field \"" + told.name + "\" has length " + std::to_string(length) +
                    "; the sample spec allows " + std::to_string(told.shape[0]));
  const auto value = static_cast<std::uint32_t>(length);
  std::memcpy(fields_[length_field].data, &value, sizeof value);
}

void Sample::clear_lengths() {
  for (std::size_t field = 0; field < spec_->fields().size(); ++field)
    if (spec_->fields()[field].variable) set_length(field, 0);
}

void Sample::enter_stage(std::size_t stage) {
  if (outer_ != nullptr)
    return outer_->enter_stage(stage <= SIZE_MAX - first_stage_ ? first_stage_ + stage : stage);
  if (stage >= stage_ns_.size() && !stage_ns_.empty())
    throw Error(ErrorCode::invalid_argument,
                "enter_stage() was given stage " + std::to_string(stage) +
                    "; the transform has stages 0 to " + std::to_string(stage_ns_.size() - 1));
  stop();
  stage_ = stage;
  paused_ = false;
  note_stage();
}

void Sample::set_decoder_name(const char* decoder_name) {
  if (outer_ != nullptr) return outer_->set_decoder_name(decoder_name);
  decoder_name_ = decoder_name;
}

bool Sample::has_hints() const {
  return outer_ != nullptr ? outer_->has_hints() : hint_buffers_ != nullptr;
}

std::span<const std::byte> Sample::hint() {
  if (outer_ != nullptr) return outer_->hint();
  if (hint_buffers_ == nullptr) return {};
  std::vector<std::byte>& hint = hint_buffers_->read;
  hint.clear();
  if (kept_hints_ != nullptr) kept_hints_->read(record_, hint);
  if (!hint.empty()) return hint;
  try {
    stored_hints_->stored_hint(record_, hint);
  } catch (...) {  // a sample never depends on its hint
    hint.clear();
    hint_buffers_->failure = text_of_exception();
  }
  return hint;
}

void Sample::keep_hint(std::span<const std::byte> hint) {
  if (outer_ != nullptr) return outer_->keep_hint(hint);
  if (kept_hints_ != nullptr) hint_buffers_->kept.assign(hint.begin(), hint.end());
}

void Sample::use_hints(RecordHints* kept, const Dataset& stored, std::uint64_t record,
                       HintBuffers& buffers) {
  kept_hints_ = kept;
  stored_hints_ = &stored;
  record_ = record;
  hint_buffers_ = &buffers;
  buffers.kept.clear();
  buffers.failure.clear();
}

void Sample::store_hint() {
  if (kept_hints_ != nullptr && !hint_buffers_->kept.empty())
    kept_hints_->keep(record_, hint_buffers_->kept);
}

std::span<const std::byte> Sample::cached() {
  if (outer_ != nullptr) return outer_->cached();
  if (cache_ == nullptr) return {};
  const std::span<const std::byte> kept = cache_->find(record_);
  from_cache_ = !kept.empty();
  return kept;
}

std::span<std::byte> Sample::room_in_cache() {
  if (outer_ != nullptr) return outer_->room_in_cache();
  if (cache_ != nullptr && room_.empty() && !from_cache_) room_ = cache_->take();
  return room_;
}

void Sample::use_cache(SampleCache& cache, std::uint64_t record) {
  cache_ = &cache;
  record_ = record;
}

void Sample::store_in_cache() {
  if (room_.empty()) return;
  cache_->keep(record_, room_);
  room_ = {};
}

void Sample::note_stage() {
  if (now_in_ != nullptr)
    now_in_->store(stage_, std::memory_order_relaxed);  // orders no other memory
  if (shown_.profiler == nullptr) return;
  shown_.profiler->begin(shown_.names[std::min(stage_, shown_.names.size() - 1)], shown_.batch);
  shown_.in_range = true;
}

void Sample::end_range() {
  if (shown_.in_range) shown_.profiler->end();
  shown_.in_range = false;
}

void Sample::show(ProfilerRanges& profiler, std::span<const char* const> names,
                  std::uint64_t batch) {
  shown_ = {&profiler, names, batch};
  note_stage();
}

void Sample::pause(unsigned shared_by) {
  if (outer_ != nullptr) return outer_->pause(shared_by);
  stop(shared_by);
  if (now_in_ != nullptr) now_in_->store(paused_stage, std::memory_order_relaxed);
}

void Sample::stop(unsigned shared_by) {
  const auto now = std::chrono::steady_clock::now();
  const auto taken = std::chrono::duration_cast<std::chrono::nanoseconds>(now - since_).count();
  if (!paused_ && stage_ < stage_ns_.size())
    stage_ns_[stage_] += static_cast<std::uint64_t>(taken) / shared_by;
  paused_ = true;
  since_ = now;
  end_range();
}

void Sample::go_on() {
  if (outer_ != nullptr) return outer_->go_on();
  since_ = std::chrono::steady_clock::now();
  paused_ = false;
  note_stage();
}

void Sample::finish() {
  if (outer_ != nullptr) return outer_->finish();
  stop();
}

std::shared_ptr<const Transform> Transform::fitted_to(const Dataset&) const { return nullptr; }

void TransformWorker::make_in_turn(SampleSource& source) {
  while (SampleTask* task = source.next())
    source.end(*task, [&] { return make(task->record, task->random, task->sample); });
}

}  // namespace millrace
