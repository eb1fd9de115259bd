// SPDX-License-Identifier: Apache-2.0
#include "dataset/open/format.h"
#include "dataset/packed/packed_dataset.h"

namespace millrace {
namespace {

/// The formats, in the order in which they are asked: one that takes less stands before one that
/// takes more. A new format is a row here and a file of its own that has its probe and its opener.
constexpr Format formats[] = {
    {"list of shards", probe_shard_list, open_shard_list},
    {"packed file", probe_packed_file, open_packed_file},
};

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path,
                                            OpenOptions options) {
  return open_by_format(formats, path, options);
}

}  // namespace millrace
