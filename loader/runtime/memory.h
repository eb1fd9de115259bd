// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/usable_memory.h>

#include <cstdint>

namespace millrace {

/// The machine's memory in bytes; 0 if the system does not tell.
std::uint64_t physical_memory();

}  // namespace millrace
