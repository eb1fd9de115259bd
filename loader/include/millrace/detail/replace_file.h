// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>

#include <filesystem>
#include <string_view>

// Threads: the functions may be called from any thread, for one file by one thread at a time.

namespace MILLRACE_API millrace {

/// Replaces a file atomically: writes a new file beside it, syncs it to storage and renames it. If
/// that fails, the existing file stays as it was. The new file has the permissions of the old one.
/// For a symbolic link, replaces its target. Other hard links of the old file keep its text. An
/// existing path that is not a regular file, such as a pipe, is written in place. Throws `Error`
/// (`io`) with the file's name, also for an existing file without write permission.
void replace_file(const std::filesystem::path& path, std::string_view text);

/// Returns the path of the temporary file that `replace_file` writes and then renames.
std::filesystem::path temporary_path_of(const std::filesystem::path& path);

}  // namespace millrace
