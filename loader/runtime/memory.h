// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/usable_memory.h>

#include <cstdint>

namespace millrace {

/// Returns the machine's memory in bytes; 0 if the system does not report it.
std::uint64_t physical_memory();

}  // namespace millrace
