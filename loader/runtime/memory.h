// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// The machine's memory in bytes; 0 if the system does not tell.
std::uint64_t physical_memory();

/// The memory that this process may use: the machine's, or less, if its control groups say so.
std::uint64_t usable_memory();

}  // namespace millrace
