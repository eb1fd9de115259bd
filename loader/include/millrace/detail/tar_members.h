// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads: both functions may be called from any thread.
// Lifetimes: the functions keep no references to their arguments.

#include <cstddef>
#include <filesystem>

namespace MILLRACE_API millrace {

/// Path of the file that stores the locations of a tar's samples: a.tar.members beside a.tar. For a
/// symbolic link: beside its target.
std::filesystem::path tar_members_path(const std::filesystem::path& tar);

/// Stores the locations of the samples in a dataset's tars, beside each tar. Later calls of
/// `open_dataset` read these files instead of all headers. Such a file is bound to the tar's
/// length, its modification time, and the headers of its first and last sample. If one of them
/// differs, the file is ignored with a warning. An existing file is replaced atomically. Returns
/// the number of files written; 0 for a dataset that does not consist of tars. Throws `Error`:
/// `already_exists` if another file has that name, `io`. May be called from any thread.
std::size_t save_tar_members(const Dataset& dataset);

}  // namespace millrace
