// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "pipeline/crew.h"
#include "pipeline/outlet.h"
#include "pipeline/planner.h"
#include "pipeline/road.h"

namespace millrace {

/// Plans batches for free host slots, and frees those that nothing reads any more.
struct Reaper {
  std::shared_ptr<Device> device;
  std::shared_ptr<Road> road;
  std::shared_ptr<Outlet> outlet;
  std::shared_ptr<Planner> planner;
  std::shared_ptr<Crew> crew;
  /// The feeder's end: what it has begun is waited for.
  std::shared_future<void> feeder_ended;
  std::vector<HostSlot*> leaving{};

  /// The thread's life: until the road is closed and nothing uses the slots any more.
  void run() noexcept;

 private:
  void plan(HostSlot& host);
  void free_left();
  void drain() noexcept;
};

}  // namespace millrace
