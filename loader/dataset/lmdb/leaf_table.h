// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/packed/lmdb_file.h"

namespace millrace {

/// Where each leaf page of a tree lies and which entries it has, so that an entry is found by its
/// number. It takes 12 bytes of memory a leaf. Immutable; all methods may be called from any thread
/// at once.
class LeafTable {
 public:
  /// Of one leaf, packed: numbers of 48 bits, as large as LMDB's own for pages below a branch.
  using Leaf = std::array<std::uint32_t, 3>;
  static_assert(sizeof(Leaf) == 12);

  /// A leaf with the number of its first entry.
  struct Place {
    LmdbLeaf leaf{};
    std::uint64_t first = 0;

    bool has(std::uint64_t entry) const { return entry - first < leaf.entries; }
  };

  LeafTable() = default;
  /// Walks over the tree's branch and leaf pages, and checks them (`LmdbPages::walk_leaves`).
  /// Throws `LmdbDamage` and `Error` (`io`).
  LeafTable(const LmdbFile& file, const LmdbTree& tree);
  /// Takes leaves as they are stored. `is_sound` is false if they cannot be of a tree with so many
  /// entries in a file of so many pages.
  LeafTable(std::vector<Leaf> leaves, std::uint64_t entries)
      : leaves_(std::move(leaves)), entries_(entries) {}
  bool is_sound(std::uint64_t pages) const;

  std::uint64_t entries() const { return entries_; }
  std::span<const Leaf> leaves() const { return leaves_; }
  /// Where entry `entry` (< `entries()`) is.
  Place find(std::uint64_t entry) const;

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
