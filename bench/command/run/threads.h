// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace millrace::cli {

/// Calls `work` with each number below `count`, on a thread of its own, and returns when all calls
/// have. `work` must not throw. Throws `Error` (`io`) if a thread cannot be started, after the
/// others have ended: their stop is then requested.
void run_on_threads(std::size_t count,
                    const std::function<void(std::size_t number, const std::stop_token&)>& work);

}  // namespace millrace::cli
