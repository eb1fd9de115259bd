// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// Arrays that are read where they lie: one of numpy's .npy files, or several files by a description
// (array_description.h). For the table of `open_dataset`: a probe says whether the file at `path`,
// which exists, is of the format, and the reason if it is not; it throws `Error` (`io`) if the file
// cannot be read. The openers throw as `open_dataset` does.

namespace millrace {

Status probe_npy(const std::filesystem::path& path);
/// A dataset of one field, which has the file's name without its ending.
std::shared_ptr<const Dataset> open_npy(const std::filesystem::path& path,
                                        const OpenOptions& options);

Status probe_arrays(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_arrays(const std::filesystem::path& path,
                                           const OpenOptions& options);

}  // namespace millrace
