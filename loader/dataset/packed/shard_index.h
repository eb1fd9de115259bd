// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/packed/dataset_file.h"

// The file that makes one dataset of several, JSON in UTF-8:
//
//     millrace_shards  1, the format
//     complete         false until the writer has finished
//     plan             how the records are shared out, in words; resuming compares it
//     shards           the finished ones in order: file (a name in the same folder), records,
//                      fingerprint
//     begun            name of the one that is being written; empty at the end
//     records          of all of them
//     fingerprint      of all of them: what the same records in one file have
//     classes, created_by, source   as in a dataset file

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

/// Whether the file begins as an index does, which no LMDB file does. False if there is no such
/// file. Throws `Error` (`io`) if it cannot be read.
bool is_shard_index(const std::filesystem::path& path);
std::string to_json(const ShardIndex& index);
/// Throws `Error`: `io`; `corrupt` for what is no index, or one of a newer format.
ShardIndex read_shard_index(const std::filesystem::path& path);

/// A listed shard of the index at `index`, opened. Throws `Error`, with both names: `not_found`;
/// `incomplete`; `corrupt` if the file is not the one that is listed.
std::shared_ptr<const DatasetFile> open_listed_shard(const std::filesystem::path& index,
                                                     const ShardEntry& shard, bool mapped = true);
/// Where a shard of the index at `index` lies.
std::filesystem::path shard_path(const std::filesystem::path& index, const std::string& file);

/// Removes the dataset at `path`, if there is one, and its shards, if it has some. Throws as
/// `DatasetWriter` does, also if something else lies there.
void remove_dataset(const std::filesystem::path& path);

/// Puts the dataset at `from` in the place of what lies at `path`, in one step: at any moment there
/// is either of the two. Then the shards that only the old one had are removed. Throws `Error`
/// (`io`).
void replace_dataset(const std::filesystem::path& from, const std::filesystem::path& path);

}  // namespace millrace
