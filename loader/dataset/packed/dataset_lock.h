// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/file_descriptor.h"

namespace millrace {

/// Makes an empty file at `path` and takes the lock (flock) that every writer of a dataset holds as
/// long as it is at work. Where the file system has no locks, no file is left. Throws as
/// `DatasetWriter` does.
FileDescriptor create_locked(const std::filesystem::path& path);

/// The regular file at `path` with its lock taken; empty if there is no file. Throws as
/// `DatasetWriter` does.
FileDescriptor lock_existing(const std::filesystem::path& path);

/// Puts a file with these contents in the place of the one at `path`, whose lock the caller holds,
/// in one step: at any moment, also when the power fails, there is either of the two. The lock of
/// the new one is taken before that. Throws `Error` (`io`).
FileDescriptor replace_locked(const std::filesystem::path& path, std::string_view contents);

/// Where that is written; a writer that was killed may have left it.
std::filesystem::path next_index(const std::filesystem::path& path);

/// Syncs the folder of a file to storage, as far as the file system can.
void sync_folder_of(const std::filesystem::path& path);

/// Whether a writer is at work on the file, as far as that can be found out.
bool is_being_written(const std::filesystem::path& path);

/// Says that a dataset is incomplete, and whether a writer is at work on it.
[[noreturn]] void throw_incomplete(const std::filesystem::path& path, std::uint64_t committed);

}  // namespace millrace
