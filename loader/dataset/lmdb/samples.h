// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/lmdb/flavour.h"
#include "dataset/packed/lmdb_file.h"

namespace millrace {

/// Calls `look` for some entries of a tree, spread over its keys, that are no metadata, and
/// `bad`, with the reason, in place of those that cannot be read. Throws `Error` (`io`).
void look_at_some(
    const LmdbFile& file, const LmdbTree& tree,
    const std::function<void(const std::string& key, std::span<const std::byte> value)>& look,
    const std::function<void(const std::string& reason)>& bad);

/// What entries of a database are, by some of them.
struct Survey {
  std::size_t looked_at = 0;
  /// How many of them hold each kind of what the flavour is for.
  std::map<std::string, std::size_t> kinds;
  std::size_t fitting = 0;
  /// Of the first that does not fit, and why; empty if all do.
  std::string misfit;
  std::vector<std::string> keys;
  /// Names of the fields, of the first that fits.
  std::vector<std::string> fields;

  bool fits() const { return looked_at > 0 && fitting == looked_at; }
  /// "all of 16 records that were looked at hold JPEG images".
  std::string reason() const;
  /// Why not all fit.
  std::string why_not() const;
};

Survey survey(const LmdbFile& file, const LmdbTree& tree, const Flavour& flavour);

}  // namespace millrace
