// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// WebDataset's tars, for the format table of `open_dataset`: one tar, a pattern of tars, or a text
// file that lists them. A probe returns whether the existing file at `path` is of the format, and
// the reason if it is not. It throws `Error` (`io`) if the file cannot be read. The opener throws
// the same errors as `open_dataset`.

namespace millrace {

/// Returns whether a name that no file has is a pattern of tars.
Status probe_tar_pattern(const std::filesystem::path& path);
Status probe_tars(const std::filesystem::path& path);
/// Opens each tar (`TarFile`). Several tars become one dataset, in their order.
std::shared_ptr<const Dataset> open_tars(const std::filesystem::path& path,
                                         const OpenOptions& options);

}  // namespace millrace
