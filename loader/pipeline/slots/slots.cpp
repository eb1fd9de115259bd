// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/slots.h"

#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <thread>

namespace millrace {
namespace {

constexpr std::array host_states{"free", "planning", "planned", "leaving"};
constexpr std::array output_states{"free", "filling", "ready", "live", "returned"};

[[noreturn]] void refuse(const char* call, const char* state) {
  throw Error(ErrorCode::internal,
              std::string("SlotQueues::") + call + " was called for a slot that is " + state);
}

}  // namespace

using Clock = std::chrono::steady_clock;

void require(bool allowed, const HostSlot& slot, const char* call) {
  if (!allowed) refuse(call, host_states.at(static_cast<std::size_t>(slot.state)));
}

void require(bool allowed, const OutputSlot& slot, const char* call) {
  if (!allowed) refuse(call, output_states.at(static_cast<std::size_t>(slot.state)));
}

void HostSlot::begin_making(const MicroBatches& micro_batches) {
  next_to_upload = 0;
  micro_batches_unmade = 0;
  for (std::size_t micro_batch = 0; micro_batch < micro_batches.count; ++micro_batch) {
    const std::size_t samples = micro_batches.samples_of(micro_batch, plan.size);
    unmade[micro_batch].store(samples, std::memory_order_relaxed);
    packed[micro_batch].clear();
    made[micro_batch] = samples == 0;
    if (samples > 0) ++micro_batches_unmade;
  }
}

OutputSlot::Use* OutputSlot::use_on(const Stream& stream) {
  for (Use& use : std::span(uses).first(used))
    if (use.stream == &stream) return &use;
  return nullptr;
}

bool OutputSlot::wait_for_uses(Clock::time_point deadline) const noexcept {
  try {
    for (std::size_t use = 0; use < used; ++use)
      if (!uses[use].done->wait(std::max(deadline - Clock::now(), Clock::duration(0))))
        return false;
  } catch (...) {
    // A failed device has no work left that uses the memory.
  }
  return true;
}

bool Slots::wait_for_uses(Clock::time_point deadline) const noexcept {
  return std::ranges::all_of(
      outputs, [deadline](const auto& output) { return output->wait_for_uses(deadline); });
}

void Slots::abandon() noexcept {
  for (auto& host : hosts) static_cast<void>(host.release());
  for (auto& output : outputs) static_cast<void>(output.release());
}

void free_when_unused(Slots slots) noexcept {
  if (slots.wait_for_uses(Clock::now())) return;
  std::shared_ptr<Slots> kept;
  try {
    kept = std::make_shared<Slots>(std::move(slots));
    std::thread([kept] {
      try {
        kept->device->prepare_thread();
      } catch (...) {
        // A failed device needs no binding.
      }
      if (!kept->wait_for_uses(Clock::now() + patience_with_device)) kept->abandon();
    }).detach();
  } catch (...) {  // no thread could be started, or memory is exhausted
    (kept ? *kept : slots).abandon();
  }
}

}  // namespace millrace
