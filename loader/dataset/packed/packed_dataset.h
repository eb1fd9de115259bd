// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// The two formats of `DatasetWriter`, for the table of `open_dataset`. A probe says whether the
// file at `path`, which exists, is of the format, and the reason if it is not; it throws `Error`
// (`io`) if the file cannot be read. The openers throw as `open_dataset` does.

namespace millrace {

Status probe_packed_file(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_packed_file(const std::filesystem::path& path,
                                                const OpenOptions& options);

Status probe_shard_list(const std::filesystem::path& path);
/// Opens the shards that the list at `path` names as one dataset, in order.
std::shared_ptr<const Dataset> open_shard_list(const std::filesystem::path& path,
                                               const OpenOptions& options);

}  // namespace millrace
