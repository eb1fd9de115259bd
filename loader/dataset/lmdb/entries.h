// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/lmdb/leaf_table.h"
#include "dataset/packed/lmdb_file.h"

namespace millrace {

/// The entries of one database that are records, in the order of their keys. Immutable after the
/// first read, and thread-safe from then on.
class Entries {
 public:
  Entries(std::shared_ptr<const LmdbFile> file, const LmdbTree& tree,
          std::shared_ptr<const LeafTable> table)
      : file_(std::move(file)), table_(std::move(table)), tree_(tree), size_(table_->entries()) {}

  /// Leaves out the entries whose keys are metadata (`is_metadata_key`).
  void leave_out_metadata();
  /// Keeps `count` entries starting at entry `first` of the database, and undoes
  /// `leave_out_metadata`.
  void keep(std::uint64_t first, std::uint64_t count);

  std::uint64_t size() const { return size_; }
  const LmdbFile& file() const { return *file_; }
  const LmdbTree& tree() const { return tree_; }
  const LeafTable& table() const { return *table_; }
  /// Returns the number of entry `n` among all entries of the database.
  std::uint64_t number(std::uint64_t n) const;

 private:
  std::shared_ptr<const LmdbFile> file_;
  std::shared_ptr<const LeafTable> table_;
  LmdbTree tree_;
  std::uint64_t first_ = 0;
  std::uint64_t size_;
  /// Numbers of the entries that are left out, ascending. They are few.
  std::vector<std::uint64_t> left_out_;
};

/// One thread's cursor over entries, which must outlive it. Returned bytes lie in the map, or in
/// memory that the next call overwrites. Throws `LmdbDamage` and `Error` (`io`) as `LmdbCursor`
/// does.
class EntryCursor {
 public:
  explicit EntryCursor(const Entries& entries) : entries_(entries), cursor_(entries.file()) {}

  /// Returns the key of entry `n` (< `size()` of the entries).
  std::string_view key(std::uint64_t n);
  std::span<const std::byte> value(std::uint64_t n);
  /// Returns the byte range of a value. Pages that contain nothing but the value are not touched.
  FileRange locate(std::uint64_t n);

  /// Returns the index of the first entry from `begin` on whose key is not less than `key`, or the
  /// number of entries if all these keys are less.
  std::uint64_t first_not_before(std::string_view key, std::uint64_t begin = 0);

  /// Returns whether a value that was returned is still unchanged.
  Status check_intact(std::span<const std::byte> value) const;
  std::size_t held_bytes() const { return cursor_.held_bytes(); }

 private:
  unsigned go_to(std::uint64_t n);

  const Entries& entries_;
  LmdbCursor cursor_;
  LeafTable::FoundLeaf place_;
};

}  // namespace millrace
