// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_binding.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace millrace {

int bind_this_thread(const std::vector<int>& cpus) {
  if (cpus.empty()) return EINVAL;
  const int most = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(most));
  if (set == nullptr) return ENOMEM;
  const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  const int error = pthread_setaffinity_np(pthread_self(), bytes, set);
  CPU_FREE(set);
  return error;
}

}  // namespace millrace
