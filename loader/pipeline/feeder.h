// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pipeline/outlet.h"
#include "pipeline/road.h"

namespace millrace {

/// Passes made micro-batches on to the outlet, in plan order.
struct Feeder {
  std::shared_ptr<Device> device;
  std::shared_ptr<Road> road;
  std::shared_ptr<Outlet> outlet;

  /// The thread's life: until the road is closed.
  void run() noexcept;
};

}  // namespace millrace
