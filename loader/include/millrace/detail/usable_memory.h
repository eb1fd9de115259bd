// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>

#include <cstdint>

namespace MILLRACE_API millrace {

/// Returns the bytes of memory that this process may use: the machine's, or less if its control
/// groups limit it; 0 if the system does not report it.
std::uint64_t usable_memory();

}  // namespace millrace
