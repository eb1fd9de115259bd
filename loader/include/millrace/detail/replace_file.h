// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>

#include <filesystem>
#include <string_view>

// Threads: the functions may be called from any thread, for one file by one thread at a time.

namespace MILLRACE_API millrace {

/// Writes a file in one step: a new one is written beside it, synced to storage and renamed. If
/// that fails, an existing file stays as it was. It keeps its permissions, and a symbolic link
/// keeps its target. What exists and is not a regular file, such as a pipe, is written in place.
/// Throws `Error` (`io`) with the file's name.
void replace_file(const std::filesystem::path& path, std::string_view text);

/// Returns the name of the new file that `replace_file` writes.
std::filesystem::path replacement_of(const std::filesystem::path& path);

}  // namespace millrace
