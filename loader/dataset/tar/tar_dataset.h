// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// WebDataset's tars, for the table of `open_dataset`: one, a pattern of them, or a text file that
// lists them. A probe says whether what lies at `path` is of the format, and the reason if it is
// not; it throws `Error` (`io`) if that cannot be read. The opener throws as `open_dataset` does.

namespace millrace {

/// Of a name at which nothing lies: whether it is a pattern.
Status probe_tar_pattern(const std::filesystem::path& path);
Status probe_tars(const std::filesystem::path& path);
/// Opens each tar (`TarFile`); several are one dataset, in their order.
std::shared_ptr<const Dataset> open_tars(const std::filesystem::path& path,
                                         const OpenOptions& options);

}  // namespace millrace
