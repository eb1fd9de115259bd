// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace millrace {

/// Binds the calling thread to these processors (the operating system's numbers). Returns 0 or an
/// errno value. Does not use hwloc: its call needs a loaded topology, which takes milliseconds for
/// each pool.
int bind_this_thread(const std::vector<int>& cpus);

}  // namespace millrace
