// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/packed/dataset_file.h"

// The index of a dataset in several files (shards), JSON in UTF-8:
//
//     millrace_shards  1, the format.
//     complete         False until the writer has finished.
//     plan             How records are distributed over shards, in words. Resuming compares it.
//     shards           The finished shards in order: file (a name in the same folder), records,
//                      fingerprint.
//     begun            Name of the shard that is being written; empty at the end.
//     records          Number of records in all shards.
//     fingerprint      Fingerprint of all records, the same as for a single file with them.
//     classes, created_by, source   As in a dataset file.

namespace millrace {

inline constexpr std::uint64_t max_shards = 99999;

struct ShardEntry {
  std::string file;
  std::uint64_t records = 0;
  std::uint64_t fingerprint = 0;
};

struct ShardIndex {
  bool complete = false;
  std::string plan;
  std::vector<ShardEntry> shards;
  std::string begun;
  std::uint64_t records = 0;
  std::uint64_t fingerprint = 0;
  std::vector<std::string> classes;
  std::string created_by;
  std::string source;

  /// Adds a finished shard.
  void add(ShardEntry shard);
};

/// Returns whether the file begins like an index, with "{"; an LMDB file never does. Returns false
/// if the file does not exist. Throws `Error` (`io`) if it cannot be read.
bool is_shard_index(const std::filesystem::path& path);
std::string to_json(const ShardIndex& index);
/// Throws `Error`: `io`; `corrupt` if the file is not an index or is of a newer format.
ShardIndex read_shard_index(const std::filesystem::path& path);

/// Opens a shard that the index at `index` lists. Throws `Error`, with both names: `not_found`;
/// `incomplete`; `corrupt` if the file is not the listed one.
std::shared_ptr<const DatasetFile> open_listed_shard(const std::filesystem::path& index,
                                                     const ShardEntry& shard, bool mapped = true);
/// Returns the path of a shard of the index at `index`.
std::filesystem::path shard_path(const std::filesystem::path& index, const std::string& file);

/// Removes the dataset at `path` and its shards, if they exist. Throws the same errors as
/// `DatasetWriter`, also if `path` is not a dataset.
void remove_dataset(const std::filesystem::path& path);

/// Atomically replaces the dataset at `path` by the one at `from`: at any moment `path` is one of
/// the two. Then removes the shards that only the old dataset used. Throws `Error` (`io`).
void replace_dataset(const std::filesystem::path& from, const std::filesystem::path& path);

}  // namespace millrace
