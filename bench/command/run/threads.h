// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace millrace::cli {

/// Calls `work` with each number below `count`, on a thread of its own. Returns when all calls have
/// returned. `work` must not throw. If a thread cannot be started, requests the stop of the others,
/// waits until they have ended, and throws `Error` (`io`).
void run_on_threads(std::size_t count,
                    const std::function<void(std::size_t number, const std::stop_token&)>& work);

}  // namespace millrace::cli
