// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/cgroup.h"

namespace millrace {

std::uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page_size > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size)
             : 0;
}

std::uint64_t usable_memory() {
  const std::uint64_t physical = physical_memory();
  return std::min(physical, cgroup_memory().value_or(physical));
}

}  // namespace millrace
