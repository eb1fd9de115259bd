// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace millrace {

/// Binds the calling thread to these processors (operating system's numbers) and returns 0, or the
/// number of the error. hwloc's call needs a loaded topology: that takes milliseconds for each
/// pool.
int bind_this_thread(const std::vector<int>& cpus);

}  // namespace millrace
