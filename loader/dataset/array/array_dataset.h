// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// Arrays that are read in place: one numpy .npy file, or several files that a description lists
// (array_description.h). These functions are for the format table of `open_dataset`. A probe
// returns whether the existing file at `path` is of the format, and the reason if it is not. It
// throws `Error` (`io`) if the file cannot be read. The openers throw the same errors as
// `open_dataset`.

namespace millrace {

Status probe_npy(const std::filesystem::path& path);
/// Opens a dataset with one field, whose name is the file's name without its extension.
std::shared_ptr<const Dataset> open_npy(const std::filesystem::path& path,
                                        const OpenOptions& options);

Status probe_arrays(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_arrays(const std::filesystem::path& path,
                                           const OpenOptions& options);

}  // namespace millrace
