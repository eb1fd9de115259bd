// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/sharded_dataset.h"

#include <millrace/error.h>

#include <utility>

#include "dataset/joined_dataset.h"
#include "dataset/packed/dataset_file.h"
#include "dataset/packed/dataset_lock.h"
#include "dataset/packed/shard_index.h"

namespace millrace {
namespace {

std::uint64_t committed_records(const std::filesystem::path& path, const ShardIndex& index) {
  if (index.begun.empty()) return index.records;
  try {
    return index.records + DatasetFile::open(shard_path(path, index.begun))->description().records;
  } catch (const Error&) {
    return index.records;
  }
}

}  // namespace

std::shared_ptr<const Dataset> open_sharded_dataset(const std::filesystem::path& path,
                                                    OpenOptions options) {
  ShardIndex index = read_shard_index(path);
  if (!index.complete) throw_incomplete(path, committed_records(path, index));
  std::vector<std::shared_ptr<const Dataset>> shards;
  std::vector<std::string> fields;
  for (const ShardEntry& entry : index.shards) {
    const std::shared_ptr<const DatasetFile> shard = open_listed_shard(path, entry);
    const std::vector<std::string>& its_fields = shard->description().fields;
    if (fields.empty()) fields = its_fields;
    if (entry.records > 0 && its_fields != fields)
      throw Error(ErrorCode::corrupt, "the records of " + entry.file + ", a shard of " +
                                          path.string() +
                                          ", have other fields than those before; pack it again");
    shards.push_back(open_dataset(shard_path(path, entry.file), options));
  }
  return join_datasets(std::move(shards), {.name = path.string(),
                                           .classes = std::move(index.classes),
                                           .facts = {.fields = std::move(fields),
                                                     .fingerprint = index.fingerprint,
                                                     .created_by = std::move(index.created_by)}});
}

}  // namespace millrace
