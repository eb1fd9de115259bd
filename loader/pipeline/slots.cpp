// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots.h"

#include <algorithm>
#include <thread>

namespace millrace {

using Clock = std::chrono::steady_clock;

bool Lease::wait_for_uses(Clock::time_point deadline) const noexcept {
  try {
    for (std::size_t use = 0; use < used; ++use)
      if (!uses[use].done->wait(std::max(deadline - Clock::now(), Clock::duration(0))))
        return false;
  } catch (...) {
    // Said above.
  }
  return true;
}

bool Slots::wait_for_uses(Clock::time_point deadline) const noexcept {
  return std::ranges::all_of(
      leases, [deadline](const auto& lease) { return lease->wait_for_uses(deadline); });
}

void Slots::abandon() noexcept {
  for (auto& host : hosts) static_cast<void>(host.release());
  for (auto& lease : leases) static_cast<void>(lease.release());
}

void let_go(Slots slots) noexcept {
  if (slots.wait_for_uses(Clock::now())) return;
  std::shared_ptr<Slots> kept;
  try {
    kept = std::make_shared<Slots>(std::move(slots));
    std::thread([kept] {
      try {
        kept->device->bind_thread();
      } catch (...) {
        // A device that fails has nothing to be bound to.
      }
      if (!kept->wait_for_uses(Clock::now() + patience_with_device)) kept->abandon();
    }).detach();
  } catch (...) {  // no thread can be started, or there is no memory
    (kept ? *kept : slots).abandon();
  }
}

}  // namespace millrace
