// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// The two formats of `DatasetWriter`, for the format table of `open_dataset`. A probe returns
// whether the existing file at `path` is of the format, and the reason if it is not. It throws
// `Error` (`io`) if the file cannot be read. The openers throw the same errors as `open_dataset`.

namespace millrace {

Status probe_packed_file(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_packed_file(const std::filesystem::path& path,
                                                const OpenOptions& options);

Status probe_shard_list(const std::filesystem::path& path);
/// Opens the shards that the index at `path` lists as one dataset, in order.
std::shared_ptr<const Dataset> open_shard_list(const std::filesystem::path& path,
                                               const OpenOptions& options);

}  // namespace millrace
