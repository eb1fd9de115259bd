// SPDX-License-Identifier: Apache-2.0
#include "pipeline/road_threads.h"

#include <new>

#include "device/profiler_range.h"
#include "pipeline/batch_path.h"

namespace millrace {

using Clock = Road::Clock;

void Feeder::run() noexcept {
  try {
    device->bind_thread();
    Clock::time_point since = Clock::now();
    while (!road->closed()) {
      const Clock::time_point look_again = outlet->look();
      const std::optional<Road::Made> made = road->next_made(since, look_again);
      if (!made) continue;
      outlet->pass_on(*made->host, made->micro_batch);
      since = Clock::now();
    }
  } catch (...) {
    road->fail("upload", device.get());
  }
}

void Reaper::run() noexcept {
  try {
    device->bind_thread();
    while (!road->closed()) {
      if (HostSlot* host = road->take_free())
        plan(*host);
      else if (road->wait_for_leaving(leaving))
        free_left();
    }
  } catch (...) {
    road->fail("plan");
  }
  drain();
}

void Reaper::plan(HostSlot& host) {
  const Clock::time_point began = Clock::now();
  const BatchPath path(road->watched());
  const ProfilerRange range(device->profiler(), "plan", host.plan.number);
  planner->plan(host);
  path.check("plan");
  const std::uint64_t number = host.plan.number;
  if (!road->planned(host, began, crew->concurrency())) return;
  crew->submit(road, host);
  prefetcher->planned(number);
}

/// Frees all slots that nothing reads any more. If it finds no such slot, it waits for the first
/// one for `look_around`.
void Reaper::free_left() try {
  const BatchPath path(road->watched());
  const auto free_if_left = [&](HostSlot& host, std::chrono::nanoseconds timeout) {
    const bool left = outlet->wait_until_left(host, timeout);
    path.check("recycle");
    if (left) road->left(host);
    return left;
  };
  bool some_left = false;
  for (HostSlot* host : leaving)
    some_left = free_if_left(*host, std::chrono::nanoseconds(0)) || some_left;
  if (!some_left && !leaving.empty()) free_if_left(*leaving.front(), look_around);
} catch (...) {
  road->fail("recycle", device.get());
}

/// Waits until all queued work on the slots has ended, that of the pipeline and of its batches'
/// streams. If some does not end, leaks the batch delivery and with it the slots.
void Reaper::drain() noexcept {
  const Clock::time_point deadline = Clock::now() + patience_with_device;
  bool ended = false;
  try {
    ended = feeder_ended.wait_until(deadline) == std::future_status::ready &&
            outlet->drain(deadline) && road->wait_for_uses(deadline);
  } catch (...) {
    // Without memory the state is unknown, so the slots may still be in use.
  }
  if (!ended) static_cast<void>(new (std::nothrow) std::shared_ptr<Outlet>(outlet));
}

}  // namespace millrace
