// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_delivery.h"

#include <algorithm>
#include <utility>

#include "device/profiler_range.h"
#include "pipeline/blocking_call_scope.h"
#include "pipeline/checked_device.h"

namespace millrace {

void BatchDelivery::copy_results(const HostSlot& host, OutputSlot& output,
                                 std::size_t micro_batch) const {
  if (micro_batch == 0) {
    output.plan = host.plan;
    output.planned_at = host.planned_at;
    output.micro_batches_taken.store(0, std::memory_order_relaxed);
    output.stream = nullptr;
    output.used = 0;
    output.records.indices.resize(host.plan.size);
    output.records.valid.resize(host.plan.size);
  }
  const std::size_t samples = queues_->micro_batches().samples_of(micro_batch, host.plan.size);
  const auto first = static_cast<std::ptrdiff_t>(
      std::min(queues_->micro_batches().begin(micro_batch), host.plan.size));
  std::copy_n(host.records.indices.begin() + first, samples,
              output.records.indices.begin() + first);
  std::copy_n(host.records.valid.begin() + first, samples, output.records.valid.begin() + first);
}

// ---- in place

InPlaceDelivery::InPlaceDelivery(std::shared_ptr<SlotQueues> queues, ProfilerRanges* profiler)
    : BatchDelivery(std::move(queues), profiler) {
  for (const auto& host : queues_->hosts()) {
    auto output = std::make_unique<OutputSlot>();
    output->host = host.get();
    output->base = host->memory.data();
    outputs_.push_back(output.get());
    queues_->add_output(std::move(output));
  }
}

void InPlaceDelivery::deliver(HostSlot& host, std::size_t micro_batch) {
  const Clock::time_point began = Clock::now();
  const ProfilerRange range(profiler_, "upload", host.plan.number);
  OutputSlot& output = *outputs_.at(host.number);
  if (micro_batch == 0) queues_->begin_filling(output);
  copy_results(host, output, micro_batch);
  queues_->micro_batch_enqueued(output, host, micro_batch, began, 0);
}

bool InPlaceDelivery::wait_until_unused(HostSlot& host, std::chrono::nanoseconds timeout) {
  const OutputSlot& output = *outputs_.at(host.number);
  for (std::size_t use = 0; use < output.used; ++use)
    if (!output.uses[use].done->wait(timeout)) return false;
  return true;
}

// ---- copy

CopyDelivery::CopyDelivery(std::shared_ptr<SlotQueues> queues, Device& device,
                           std::unique_ptr<Upload> upload, std::size_t slots,
                           std::size_t slot_bytes, HostFallback host_fallback)
    : BatchDelivery(std::move(queues), device.profiler()),
      upload_(std::move(upload)),
      host_fallback_(std::move(host_fallback)) {
  const std::size_t micro_batches = queues_->micro_batches().count;
  for (const auto& host : queues_->hosts())
    for (std::size_t number = 0; number < micro_batches; ++number)
      host->copies.push_back({{}, checked_timed_event(device), checked_timed_event(device)});
  for (std::size_t slot = 0; slot < slots; ++slot) {
    auto output = std::make_unique<OutputSlot>();
    output->memory = checked_device_memory(device, slot_bytes);
    output->base = output->memory.data();
    for (std::size_t number = 0; number < micro_batches; ++number)
      output->copied.push_back(checked_event(device));
    queues_->add_output(std::move(output));
  }
  queues_->set_words({"device", "device_slots"});
}

void CopyDelivery::deliver(HostSlot& host, std::size_t micro_batch) {
  host.copies[micro_batch].made_at = Clock::now();
  std::size_t copied = 0;
  if (upload_->staged()) {  // a copy into a staging slot does not wait for a device slot
    const BlockingCallScope scope(queues_->forbids_blocking());
    const ProfilerRange range(profiler_, "upload", host.plan.number);
    copied = upload_->copy(host, micro_batch);
    scope.check("upload");
  }
  if (upload_->marks() && !replace_marked(host, micro_batch)) return;
  if (micro_batch == 0) output_ = queues_->wait_for_output(host.plan.number);
  if (output_ == nullptr) return;
  const Clock::time_point began = Clock::now();
  const BlockingCallScope scope(queues_->forbids_blocking());
  const ProfilerRange range(profiler_, "upload", host.plan.number);
  copied += upload_->deliver(host, *output_, micro_batch);
  copy_results(host, *output_, micro_batch);
  scope.check("upload");
  queues_->micro_batch_enqueued(*output_, host, micro_batch, began, copied);
  if (micro_batch + 1 == queues_->micro_batches().count) queues_->leave(host);
}

/// Calls `wait` with a timeout until it returns true. Returns false if the run has ended.
template <typename Wait>
bool CopyDelivery::wait_unless_closed(const Wait& wait) const {
  while (!wait(poll_interval))
    if (queues_->closed()) return false;
  return true;
}

/// Waits for the marks of a micro-batch, and replaces the marked samples. Returns false if the run
/// has ended.
bool CopyDelivery::replace_marked(HostSlot& host, std::size_t micro_batch) {
  const auto copied = [&] {
    return wait_unless_closed([&](auto timeout) { return upload_->wait_for_replaced(timeout); });
  };
  if (!wait_unless_closed([&](auto timeout) { return upload_->wait_for_marks(timeout); }))
    return false;
  const std::span<const std::uint8_t> marked = upload_->marked(host, micro_batch);
  if (std::ranges::all_of(marked, [](std::uint8_t mark) { return mark == 0; })) return true;
  for (std::size_t number = 0; number < marked.size(); ++number) {
    if (marked[number] == 0) continue;
    const std::byte* const made =
        host_fallback_.sample(host, queues_->micro_batches().begin(micro_batch) + number);
    if (made == nullptr) return false;
    upload_->replace(number, made);
    if (!copied()) return false;
  }
  if (!host_fallback_.batch(host)) return false;
  upload_->copy_others(host, micro_batch);
  return copied();
}

CopyDelivery::Clock::time_point CopyDelivery::poll_completions() {
  if (!upload_->converting()) return Clock::time_point::max();
  conversions_.clear();
  upload_->take_conversions(conversions_);
  if (!conversions_.empty()) queues_->converted(conversions_);
  return Clock::now() + poll_interval;
}

bool CopyDelivery::wait_until_unused(HostSlot& host, std::chrono::nanoseconds timeout) {
  if (!host.copies.back().end->wait(timeout)) return false;
  for (HostSlot::Copy& copy : host.copies) {
    copy.began_at = copy.begin->passed_at();
    copy.ended_at = copy.end->passed_at();
  }
  return true;
}

}  // namespace millrace
