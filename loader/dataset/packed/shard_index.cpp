// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/shard_index.h"

#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/json_members.h"
#include "dataset/fingerprint.h"
#include "dataset/packed/dataset_lock.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t index_format = 1;
/// Largest size of an index, far more than the largest number of shards needs.
constexpr std::size_t max_index_bytes = std::size_t{64} << 20;
constexpr const char* format_key = "millrace_shards";

[[noreturn]] void throw_unopened(const fs::path& path) {
  throw Error(ErrorCode::io, path.string() + " cannot be opened: " + errno_text(errno));
}

std::string checked_name(const std::string& file) {
  if (file.empty() || file == "." || file == ".." || file.size() > NAME_MAX ||
      file.find('/') != std::string::npos)
    throw Error(ErrorCode::corrupt, "\"" + cut(file) + "\" is not the name of a file beside it");
  return file;
}

ShardIndex parse(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  const auto format = count_of(json.at(format_key), format_key);
  if (format > index_format)
    throw Error(ErrorCode::corrupt, "its format " + std::to_string(format) +
                                        " is newer than this millrace: use a newer one");
  ShardIndex index;
  for (const nlohmann::json& shard : json.at("shards"))
    index.add({.file = checked_name(name_from_json(shard.at("file"))),
               .records = count_of(shard.at("records"), "records"),
               .fingerprint = parse_hex16(shard.at("fingerprint"))});
  json.at("complete").get_to(index.complete);
  json.at("plan").get_to(index.plan);
  index.begun = name_from_json(json.at("begun"));
  if (!index.begun.empty()) checked_name(index.begun);
  index.classes = names_from_json(json.at("classes"));
  json.at("created_by").get_to(index.created_by);
  json.at("source").get_to(index.source);
  if (count_of(json.at("records"), "records") != index.records ||
      parse_hex16(json.at("fingerprint")) != index.fingerprint)
    throw Error(ErrorCode::corrupt, "its shards do not add up to what it says of all of them");
  return index;
}

/// Returns the files that the index at `path` names; empty if it is not an index.
std::vector<fs::path> shards_at(const fs::path& path) {
  std::vector<fs::path> shards;
  if (!is_shard_index(path)) return shards;
  ShardIndex index;
  try {
    index = read_shard_index(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
    return shards;  // this is another kind of file that begins with a brace
  }
  if (!index.begun.empty()) index.add({.file = index.begun});
  for (const ShardEntry& shard : index.shards) shards.push_back(shard_path(path, shard.file));
  return shards;
}

}  // namespace

void ShardIndex::add(ShardEntry shard) {
  fingerprint = fingerprint_of_both(fingerprint, shard.fingerprint, shard.records);
  records += shard.records;
  shards.push_back(std::move(shard));
}

bool is_shard_index(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  const int first = file.get();
  if (!file.is_open() || file.bad()) throw_unopened(path);
  return first == '{';
}

std::string to_json(const ShardIndex& index) {
  nlohmann::json shards = nlohmann::json::array();
  for (const ShardEntry& shard : index.shards)
    shards.push_back({{"file", name_to_json(shard.file)},
                      {"records", shard.records},
                      {"fingerprint", hex16(shard.fingerprint)}});
  const nlohmann::json json = {{format_key, index_format},
                               {"complete", index.complete},
                               {"plan", index.plan},
                               {"shards", shards},
                               {"begun", name_to_json(index.begun)},
                               {"records", index.records},
                               {"fingerprint", hex16(index.fingerprint)},
                               {"classes", names_to_json(index.classes)},
                               {"created_by", index.created_by},
                               {"source", index.source}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

ShardIndex read_shard_index(const fs::path& path) {
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  if (!file) throw_unopened(path);
  const std::string text = read_text(file, max_index_bytes);
  if (file.bad()) throw Error(ErrorCode::io, path.string() + " cannot be read to its end");
  const auto refuse = [&](const std::string& why) {
    return Error(
        ErrorCode::corrupt,
        path.string() +
            " is not a dataset: neither an LMDB file nor an undamaged list of shards; copy "
            "or pack it again (" +
            why + ")");
  };
  if (const std::string problem = json_problem(text, max_index_bytes); !problem.empty())
    throw refuse("it " + problem);
  try {
    return parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw refuse(cut(json_reason(error)));
  } catch (const Error& error) {
    throw error.with_context(path.string() + ", a list of shards, cannot be read: ");
  }
}

fs::path shard_path(const fs::path& index, const std::string& file) {
  // If the path is a symbolic link, the shards are in the folder of its target.
  return resolved(index).parent_path() / file;
}

std::shared_ptr<const DatasetFile> open_listed_shard(const fs::path& index, const ShardEntry& shard,
                                                     bool mapped) {
  const fs::path path = shard_path(index, shard.file);
  const auto refuse = [&](ErrorCode code, const std::string& what) {
    return Error(code, "a shard of " + index.string() + " is " + what);
  };
  std::shared_ptr<const DatasetFile> found_file;
  try {
    if (is_shard_index(path))
      throw Error(ErrorCode::corrupt, path.string() + " lists shards itself");
    found_file = DatasetFile::open(path, mapped);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found)
      throw error.with_context("a shard of " + index.string() + " is unreadable: ");
    throw refuse(error.code(),
                 "missing: " + path.string() + " does not exist; put it there, or pack again");
  }
  const Description& found = found_file->description();
  if (!found.complete)
    throw refuse(ErrorCode::incomplete,
                 "incomplete: " + path.string() + "; put the right file there");
  if (found.records != shard.records || found.fingerprint != shard.fingerprint)
    throw refuse(ErrorCode::corrupt, "another one than it lists: " + path.string() + " has " +
                                         std::to_string(found.records) +
                                         " records with fingerprint " + hex16(found.fingerprint) +
                                         ", listed are " + std::to_string(shard.records) +
                                         " with " + hex16(shard.fingerprint) +
                                         "; put the right file there, or pack again");
  return found_file;
}

namespace {

/// Removes a hints file, and the file that a killed writer of hints left.
void unlink_hints(const fs::path& hints) {
  if (is_hints_file(hints)) unlink(hints.c_str());
  unlink((hints.string() + ".replacement").c_str());
}

void unlink_with_hints(const fs::path& file) {
  const fs::path hints = stored_hints_path(file);
  unlink(file.c_str());
  unlink_hints(hints);
}

}  // namespace

void remove_dataset(const fs::path& path) {
  const FileDescriptor locked = lock_existing(path);
  if (!locked) return;
  if (!is_shard_index(path) && !LmdbFile::probe(path).is_ok())
    throw Error(ErrorCode::already_exists, path.string() + " exists and is not a dataset");
  // The index is removed last. Until then it lists the files that remain to be removed.
  for (const fs::path& shard : shards_at(path)) unlink_with_hints(shard);
  unlink(replacement_path(path).c_str());
  unlink_with_hints(path);
}

void replace_dataset(const fs::path& from, const fs::path& path) {
  const std::vector<fs::path> old_shards = shards_at(path);
  if (rename(from.c_str(), path.c_str()) != 0)
    throw Error(ErrorCode::io, path.string() + " cannot be replaced by " + from.string() + ": " +
                                   errno_text(errno));
  sync_folder_of(path);
  const std::vector<fs::path> shards = shards_at(path);
  for (const fs::path& shard : old_shards)
    if (std::ranges::find(shards, shard) == shards.end() && shard.filename() != path.filename())
      unlink_with_hints(shard);
  unlink_hints(stored_hints_path(path));
}

}  // namespace millrace
