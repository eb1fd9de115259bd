// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace millrace {

/// Binds the calling thread to these processors (operating system's numbers). 0, or the number of
/// the error that kept it from that.
int bind_this_thread(const std::vector<int>& cpus);

}  // namespace millrace
