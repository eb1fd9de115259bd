// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <filesystem>
#include <memory>

namespace millrace {

/// Opens the shards that the index at `path` lists as one dataset, in order. Throws as
/// `open_dataset` does.
std::shared_ptr<const Dataset> open_sharded_dataset(const std::filesystem::path& path,
                                                    OpenOptions options);

}  // namespace millrace
