// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline_threads.h"

#include <new>

#include "device/profiler_range.h"
#include "pipeline/blocking_call_scope.h"

namespace millrace {

using Clock = SlotQueues::Clock;

void UploadThread::run() noexcept {
  try {
    device->prepare_thread();
    Clock::time_point since = Clock::now();
    while (!queues->closed()) {
      const Clock::time_point next_poll = delivery->poll_completions();
      const std::optional<SlotQueues::ReadyMicroBatch> made = queues->next_made(since, next_poll);
      if (!made) continue;
      delivery->deliver(*made->host, made->micro_batch);
      since = Clock::now();
    }
  } catch (...) {
    queues->fail("upload", device.get());
  }
}

void PlanRecycleThread::run() noexcept {
  try {
    device->prepare_thread();
    while (!queues->closed()) {
      if (HostSlot* host = queues->take_free())
        plan(*host);
      else if (queues->wait_for_leaving(leaving))
        free_left();
    }
  } catch (...) {
    queues->fail("plan");
  }
  drain();
}

void PlanRecycleThread::plan(HostSlot& host) {
  const Clock::time_point began = Clock::now();
  const BlockingCallScope scope(queues->forbids_blocking());
  const ProfilerRange range(device->profiler(), "plan", host.plan.number);
  planner->plan(host);
  scope.check("plan");
  const std::uint64_t number = host.plan.number;
  if (!queues->planned(host, began, sample_workers->concurrency())) return;
  sample_workers->submit(queues, host);
  if (prefetcher != nullptr) prefetcher->note_planned(number);
}

/// Frees all leaving slots that no copy or stream reads any more. If all are still read, waits up
/// to `poll_interval` for the first leaving slot.
void PlanRecycleThread::free_left() try {
  const BlockingCallScope scope(queues->forbids_blocking());
  const auto free_if_left = [&](HostSlot& host, std::chrono::nanoseconds timeout) {
    const bool left = delivery->wait_until_unused(host, timeout);
    scope.check("recycle");
    if (left) {
      host.sampler.reset();  // this may free weights that no other batch needs
      host.records_held.reset();
      queues->free_host(host);
    }
    return left;
  };
  bool some_left = false;
  for (HostSlot* host : leaving)
    some_left = free_if_left(*host, std::chrono::nanoseconds(0)) || some_left;
  if (!some_left && !leaving.empty()) free_if_left(*leaving.front(), poll_interval);
} catch (...) {
  queues->fail("recycle", device.get());
}

/// Waits until all queued work on the slots has ended: the pipeline's own work and the uses of
/// batches on streams. If some work does not end in time, leaks the batch delivery and with it the
/// slots.
void PlanRecycleThread::drain() noexcept {
  const Clock::time_point deadline = Clock::now() + patience_with_device;
  bool ended = false;
  try {
    ended = upload_ended.wait_until(deadline) == std::future_status::ready &&
            delivery->drain(deadline) && queues->wait_for_uses(deadline);
  } catch (...) {
    // Memory is exhausted. It is unknown whether the work has ended, so the slots may still be in
    // use.
  }
  if (!ended) static_cast<void>(new (std::nothrow) std::shared_ptr<BatchDelivery>(delivery));
}

}  // namespace millrace
