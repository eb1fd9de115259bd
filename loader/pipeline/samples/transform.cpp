// SPDX-License-Identifier: Apache-2.0
#include <millrace/device_stage.h>
#include <millrace/transform.h>

#include <cstring>

#include "pipeline/samples/sample_context.h"

namespace millrace {

Sample::Sample(const SampleSpec& spec, std::span<const Tensor> fields,
               std::span<std::uint64_t> stage_ns)
    : Sample(spec, fields, stage_ns, nullptr, std::chrono::steady_clock::now()) {}

Sample::Sample(const SampleSpec& spec, std::span<const Tensor> fields,
               std::span<std::uint64_t> stage_ns, SampleContext* context,
               std::chrono::steady_clock::time_point begin)
    : spec_(&spec), fields_(fields), context_(context), stage_ns_(stage_ns), since_(begin) {
  clear_lengths();
  note_stage();
}

Sample::Sample(Sample& outer, const SampleSpec& spec, std::span<const Tensor> fields,
               std::size_t first_stage)
    : spec_(&spec),
      fields_(fields),
      outer_(&outer),
      first_stage_(first_stage),
      context_(outer.context_) {
  clear_lengths();
  enter_stage(0);
}

Sample::~Sample() {
  if (context_ != nullptr && outer_ == nullptr) context_->end();
}

void Sample::set_length(std::size_t field, std::size_t length) {
  const std::size_t length_field = spec_->length_field_of(field);
  const FieldSpec& spec = spec_->fields()[field];
  if (length > spec.shape[0])
    throw Error(ErrorCode::invalid_argument,
                "a sample's field \"" + spec.name + "\" has length " + std::to_string(length) +
                    "; the sample spec allows " + std::to_string(spec.shape[0]));
  const auto value = static_cast<std::uint32_t>(length);
  std::memcpy(fields_[length_field].data, &value, sizeof value);
}

void Sample::clear_lengths() {
  for (std::size_t field = 0; field < spec_->fields().size(); ++field)
    if (spec_->fields()[field].variable) set_length(field, 0);
}

std::span<std::byte> Sample::packed_room(std::size_t field, std::size_t bytes, std::size_t least) {
  const FieldSpec& spec = spec_->fields().at(field);
  if (spec.device_stages.empty() || !spec.device_stages.front()->packed())
    throw Error(ErrorCode::invalid_argument, "packed_room() was called for field \"" + spec.name +
                                                 "\", which no device stage takes in any length");
  if (context_ != nullptr) return context_->packed_room(bytes, least);
  if (bytes > fields_[field].bytes()) return {};
  return {static_cast<std::byte*>(fields_[field].data), bytes};
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

bool Sample::has_hints() const { return context_ != nullptr && context_->has_hints(); }

std::span<const std::byte> Sample::hint() {
  return context_ != nullptr ? context_->hint() : std::span<const std::byte>();
}

void Sample::keep_hint(std::span<const std::byte> hint) {
  if (context_ != nullptr) context_->keep_hint(hint);
}

std::span<const std::byte> Sample::cached() {
  return context_ != nullptr ? context_->cached() : std::span<const std::byte>();
}

std::span<std::byte> Sample::room_in_cache() {
  return context_ != nullptr ? context_->room_in_cache() : std::span<std::byte>();
}

std::span<const std::byte> Sample::recoded() {
  return context_ != nullptr ? context_->recoded() : std::span<const std::byte>();
}

bool Sample::wants_recoded(std::size_t stored_bytes) const {
  return context_ != nullptr && context_->wants_recoded(stored_bytes);
}

void Sample::keep_recoded(std::span<const std::byte> form) {
  if (context_ != nullptr) context_->keep_recoded(form);
}

void Sample::note_stage() {
  if (context_ != nullptr) context_->enter_stage(stage_);
}

void Sample::pause(unsigned shared_by) {
  if (outer_ != nullptr) return outer_->pause(shared_by);
  stop(shared_by);
  if (context_ != nullptr) context_->show_pause();
}

void Sample::stop(unsigned shared_by) {
  const auto now = std::chrono::steady_clock::now();
  const auto taken = std::chrono::duration_cast<std::chrono::nanoseconds>(now - since_).count();
  if (!paused_ && stage_ < stage_ns_.size())
    stage_ns_[stage_] += static_cast<std::uint64_t>(taken) / shared_by;
  paused_ = true;
  since_ = now;
  if (context_ != nullptr) context_->leave_stage();
}

void Sample::go_on() {
  if (outer_ != nullptr) return outer_->go_on();
  since_ = std::chrono::steady_clock::now();
  paused_ = false;
  note_stage();
}

std::shared_ptr<const Transform> Transform::fitted_to(const Dataset&) const { return nullptr; }

void TransformWorker::make_interleaved(SampleSource& source) {
  while (SampleTask* task = source.next())
    source.make_and_return(*task, [&] { return make(task->record, task->random, task->sample); });
}

}  // namespace millrace
