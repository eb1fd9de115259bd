// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/file_descriptor.h"

namespace millrace {

/// Creates an empty file at `path` and takes its lock (flock). Every writer of a dataset holds this
/// lock while it works. If the file system has no locks, the file is deleted again. Throws the same
/// errors as `DatasetWriter`.
FileDescriptor create_locked(const std::filesystem::path& path);

/// Opens the regular file at `path` and takes its lock. Returns an empty descriptor if the file
/// does not exist. Throws the same errors as `DatasetWriter`.
FileDescriptor lock_existing(const std::filesystem::path& path);

/// Atomically replaces the file at `path`, whose lock the caller holds, by one with these contents.
/// At any moment, even if the power fails, `path` is either the old or the new file. The new file
/// is locked before it replaces the old one; its descriptor is returned. Throws `Error` (`io`).
FileDescriptor replace_locked(const std::filesystem::path& path, std::string_view contents);

/// Returns the temporary path that `replace_locked` writes to. A killed writer may leave this file.
std::filesystem::path replacement_path(const std::filesystem::path& path);

/// Syncs the folder of a file to storage, if the file system supports it.
void sync_folder_of(const std::filesystem::path& path);

/// Returns whether a writer holds the file's lock. False if the lock cannot be tested: the file
/// cannot be opened, or its file system has no locks.
bool is_being_written(const std::filesystem::path& path);

/// Throws the error that a dataset is incomplete. The message says whether a writer is working on
/// the dataset.
[[noreturn]] void throw_incomplete(const std::filesystem::path& path, std::uint64_t committed);

}  // namespace millrace
