// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/packed/lmdb_file.h"

namespace millrace {

/// Table of a tree's leaf pages: the page of each and the number of its first entry, to find an
/// entry by its number. Takes 12 bytes a leaf. Immutable and thread-safe.
class LeafTable {
 public:
  /// One leaf, packed: two 48-bit numbers, the leaf's page and its first entry. LMDB also uses 48
  /// bits for the page numbers in its branch pages.
  using Leaf = std::array<std::uint32_t, 3>;
  static_assert(sizeof(Leaf) == 12);

  /// A leaf and the number of its first entry.
  struct FoundLeaf {
    LmdbLeaf leaf{};
    std::uint64_t first = 0;

    bool has(std::uint64_t entry) const { return entry - first < leaf.entries; }
  };

  LeafTable() = default;
  /// Walks the tree's branch and leaf pages and checks them (`LmdbPages::walk_leaves`). Throws
  /// `LmdbDamage` and `Error` (`io`).
  LeafTable(const LmdbFile& file, const LmdbTree& tree);
  /// Takes stored leaves without checking them. `is_sound` returns false if they cannot belong to a
  /// tree of `entries` entries in a file of `pages` pages.
  LeafTable(std::vector<Leaf> leaves, std::uint64_t entries)
      : leaves_(std::move(leaves)), entries_(entries) {}
  bool is_sound(std::uint64_t pages) const;

  std::uint64_t entries() const { return entries_; }
  std::span<const Leaf> leaves() const { return leaves_; }
  /// Returns the leaf of entry `entry` (< `entries()`).
  FoundLeaf find(std::uint64_t entry) const;

 private:
  static std::uint64_t page_of(const Leaf& leaf) {
    return leaf[0] | std::uint64_t{leaf[2] & 0xFFFF} << 32;
  }
  static std::uint64_t first_of(const Leaf& leaf) {
    return leaf[1] | std::uint64_t{leaf[2] >> 16} << 32;
  }

  std::vector<Leaf> leaves_;
  std::uint64_t entries_ = 0;
};

}  // namespace millrace
