// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <string>
#include <system_error>

namespace millrace {

/// Text of an errno, such as "No such file or directory". Thread-safe.
inline std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace millrace
