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

/// Entries of one database that are records, in the order of their keys. Immutable once it is read
/// from; all methods may then be called from any thread at once.
class Entries {
 public:
  Entries(std::shared_ptr<const LmdbFile> file, const LmdbTree& tree,
          std::shared_ptr<const LeafTable> table)
      : file_(std::move(file)), table_(std::move(table)), tree_(tree), size_(table_->entries()) {}

  /// Leaves out those whose keys are for what describes the dataset (`is_metadata_key`).
  void leave_out_metadata();
  /// Keeps `count` entries from `first` on. Nothing is left out of them.
  void keep(std::uint64_t first, std::uint64_t count);

  std::uint64_t size() const { return size_; }
  const LmdbFile& file() const { return *file_; }
  const LmdbTree& tree() const { return tree_; }
  const LeafTable& table() const { return *table_; }
  /// The number among all entries that entry `n` has.
  std::uint64_t number(std::uint64_t n) const;

 private:
  std::shared_ptr<const LmdbFile> file_;
  std::shared_ptr<const LeafTable> table_;
  LmdbTree tree_;
  std::uint64_t first_ = 0;
  std::uint64_t size_;
  /// Numbers of entries that are left out, in their order: a few.
  std::vector<std::uint64_t> left_out_;
};

/// One thread's way to the entries, which must outlive it. What it returns lies in the map, or in
/// memory that the next call overwrites. Throws `LmdbDamage` and `Error` (`io`) as `LmdbCursor`.
class EntryCursor {
 public:
  explicit EntryCursor(const Entries& entries) : entries_(entries), cursor_(entries.file()) {}

  /// Of entry `n` (< `size()` of the entries).
  std::string_view key(std::uint64_t n);
  std::span<const std::byte> value(std::uint64_t n);
  /// Where its value lies; pages that hold nothing but the value are not touched.
  FileRange locate(std::uint64_t n);

  /// The first entry from `begin` on whose key is not before `key`; their number if there is none.
  std::uint64_t first_not_before(std::string_view key, std::uint64_t begin = 0);

  /// Whether a value that was found is still what it was.
  Status check_kept(std::span<const std::byte> value) const;

 private:
  unsigned go_to(std::uint64_t n);

  const Entries& entries_;
  LmdbCursor cursor_;
  LeafTable::Place place_;
};

}  // namespace millrace
