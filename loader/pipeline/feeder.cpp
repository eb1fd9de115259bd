// SPDX-License-Identifier: Apache-2.0
#include "pipeline/feeder.h"

namespace millrace {

void Feeder::run() noexcept {
  try {
    device->bind_thread();
    Road::Clock::time_point since = Road::Clock::now();
    while (!road->closed()) {
      const Road::Clock::time_point look_again = outlet->look();
      const std::optional<Road::Made> made = road->next_made(since, look_again);
      if (!made) continue;
      outlet->pass_on(*made->host, made->micro_batch);
      since = Road::Clock::now();
    }
  } catch (...) {
    road->fail("upload");
  }
}

}  // namespace millrace
