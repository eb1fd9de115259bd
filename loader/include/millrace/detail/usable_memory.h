// SPDX-License-Identifier: Apache-2.0
// For the folders of millrace alone; it is not installed.
#pragma once

#include <millrace/detail/export.h>

#include <cstdint>

namespace MILLRACE_API millrace {

/// The memory that this process may use: the machine's, or less, if its control groups say so; 0 if
/// the system does not tell.
std::uint64_t usable_memory();

}  // namespace millrace
