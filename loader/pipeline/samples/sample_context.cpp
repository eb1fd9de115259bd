// SPDX-License-Identifier: Apache-2.0
#include "pipeline/samples/sample_context.h"

#include <millrace/detail/sample_position.h>

#include <algorithm>

#include "base/exception_text.h"

namespace millrace {

std::uint64_t position_of(const Sample& sample) { return SampleContext::position_of(sample); }

Sample SampleContext::begin(const SampleSpec& spec, std::span<const Tensor> fields,
                            std::span<std::uint64_t> stage_ns, std::uint64_t record,
                            std::uint64_t batch, Clock::time_point begin) {
  record_ = record;
  batch_ = batch;
  kept_hint_.clear();
  hint_failure_.clear();
  keeps_form_ = false;
  source_ = Source::record;
  return Sample(spec, fields, stage_ns, this, begin);
}

SampleContext::Clock::time_point SampleContext::finish(Sample& sample) {
  sample.stop();
  return sample.since_;
}

void SampleContext::store() {
  if (shared_.kept_hints != nullptr && !kept_hint_.empty())
    shared_.kept_hints->keep(record_, kept_hint_);
  if (keeps_form_) shared_.recoded->keep(record_, form_);
  if (room_.empty()) return;
  shared_.cache->keep(record_, room_);
  room_ = {};
}

std::span<const std::byte> SampleContext::hint() {
  if (!has_hints()) return {};
  read_hint_.clear();
  if (shared_.kept_hints != nullptr) shared_.kept_hints->read(record_, read_hint_);
  if (read_hint_.empty()) read_stored_hint();
  if (!read_hint_.empty()) source_ = Source::hinted_record;
  return read_hint_;
}

void SampleContext::read_stored_hint() {
  try {
    shared_.stored_hints->stored_hint(record_, read_hint_);
  } catch (...) {  // an error is ignored, because samples do not depend on hints
    read_hint_.clear();
    hint_failure_ = text_of_exception();
  }
}

void SampleContext::keep_hint(std::span<const std::byte> hint) {
  if (shared_.kept_hints != nullptr) kept_hint_.assign(hint.begin(), hint.end());
}

std::span<const std::byte> SampleContext::cached() {
  if (shared_.cache == nullptr) return {};
  const std::span<const std::byte> kept = shared_.cache->find(record_);
  if (!kept.empty()) source_ = Source::cache;
  return kept;
}

std::span<std::byte> SampleContext::room_in_cache() {
  if (shared_.cache != nullptr && room_.empty() && source_ != Source::cache)
    room_ = shared_.cache->take();
  return room_;
}

std::span<const std::byte> SampleContext::recoded() {
  if (shared_.recoded == nullptr) return {};
  const std::span<const std::byte> kept = shared_.recoded->find(record_);
  if (!kept.empty()) source_ = Source::cache;
  return kept;
}

bool SampleContext::wants_recoded(std::size_t stored_bytes) const {
  return shared_.recoded != nullptr && shared_.recoded->wants(record_, stored_bytes);
}

void SampleContext::keep_recoded(std::span<const std::byte> form) {
  if (shared_.recoded == nullptr) return;
  form_ = form;
  keeps_form_ = true;
  if (!form.empty()) source_ = Source::recoded_now;
}

void SampleContext::enter_stage(std::size_t stage) {
  // Orders no other memory.
  if (now_in_ != nullptr) now_in_->store(stage, std::memory_order_relaxed);
  if (shared_.profiler == nullptr) return;
  const auto& names = shared_.stage_names;
  shared_.profiler->begin(names[std::min(stage, names.size() - 1)], batch_);
  in_range_ = true;
}

void SampleContext::leave_stage() {
  if (in_range_) shared_.profiler->end();
  in_range_ = false;
}

void SampleContext::show_pause() {
  if (now_in_ != nullptr) now_in_->store(paused_stage, std::memory_order_relaxed);
}

void SampleContext::end() {
  if (!room_.empty()) shared_.cache->give_back(room_);
  room_ = {};
  leave_stage();
}

}  // namespace millrace
