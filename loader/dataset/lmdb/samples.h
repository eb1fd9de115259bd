// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/lmdb/lmdb_schema.h"
#include "dataset/packed/lmdb_file.h"

namespace millrace {

/// Calls `look` for a sample of a tree's entries, spread over its keys, without metadata. Calls
/// `bad` with the reason for entries that cannot be read. Throws `Error` (`io`).
void look_at_some(
    const LmdbFile& file, const LmdbTree& tree,
    const std::function<void(const std::string& key, std::span<const std::byte> value)>& look,
    const std::function<void(const std::string& reason)>& bad);

/// Kinds of the entries of a database, judged by a sample.
struct Survey {
  std::size_t looked_at = 0;
  /// Number of sampled entries of each kind (`EntryParser::kind`).
  std::map<std::string, std::size_t> kinds;
  std::size_t fitting = 0;
  /// Key of the first entry that does not fit, and the reason; empty if all fit.
  std::string misfit;
  std::vector<std::string> keys;
  /// Field names of the first entry that fits.
  std::vector<std::string> fields;

  bool fits() const { return looked_at > 0 && fitting == looked_at; }
  /// Describes the result: "all of 16 records that were looked at hold JPEG images".
  std::string reason() const;
  /// Returns the reason why not all entries fit.
  std::string why_not() const;
};

Survey survey(const LmdbFile& file, const LmdbTree& tree, const LmdbSchema& schema);

}  // namespace millrace
