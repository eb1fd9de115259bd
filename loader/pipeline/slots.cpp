// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots.h"

namespace millrace {

bool wait_for_uses(const Lease& lease, std::chrono::nanoseconds timeout) noexcept {
  try {
    for (std::size_t use = 0; use < lease.used; ++use)
      if (!lease.uses[use].done->wait(timeout)) return false;
  } catch (...) {
    // Said above.
  }
  return true;
}

}  // namespace millrace
