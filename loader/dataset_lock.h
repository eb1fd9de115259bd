// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "file_descriptor.h"

namespace millrace {

/// Makes an empty file at `path` and takes the lock (flock) that every writer of a dataset holds as long as it is at work.
/// Throws as `DatasetWriter` does.
FileDescriptor create_locked(const std::filesystem::path& path, bool overwrite);

/// Whether a writer is at work on the file, as far as that can be found out.
bool is_being_written(const std::filesystem::path& path);

}  // namespace millrace
