// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/leaf_table.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr std::uint64_t most = (std::uint64_t{1} << 48) - 1;

}  // namespace

LeafTable::LeafTable(const LmdbFile& file, const LmdbTree& tree) {
  const LmdbCursor cursor(file);
  const std::uint64_t page_bytes = file.meta().page_bytes;
  if (tree.leaves > file.pages())
    throw_damage(tree.root, "is the root of a tree with more leaves than the file has pages");
  leaves_.reserve(tree.leaves);
  const auto add = [&](LmdbLeaf leaf) {
    if (leaf.page > most || entries_ > most)
      throw_damage(leaf.page, "is a leaf beyond the 48 bits of its tree");
    leaves_.push_back({static_cast<std::uint32_t>(leaf.page), static_cast<std::uint32_t>(entries_),
                       static_cast<std::uint32_t>(leaf.page >> 32 | entries_ >> 32 << 16)});
    entries_ += leaf.entries;
  };
  const auto ask_for = [&](std::span<const std::uint64_t> pages) {
    std::vector<FileRange> ranges;
    ranges.reserve(pages.size());
    for (const std::uint64_t page : pages)
      if (page < file.pages()) ranges.push_back({page * page_bytes, page_bytes});
    file.read_ahead(std::move(ranges));
  };
  cursor.with([&](const LmdbPages& pages) { pages.walk_leaves(tree, add, ask_for); });
}

bool LeafTable::is_sound(std::uint64_t pages) const {
  // A leaf has at least one entry, and at most as many as fit into a page of the largest size.
  constexpr std::uint64_t max_nodes = 1 << 15;
  const auto is_odd = [](std::uint64_t begin, std::uint64_t end) {
    return end - begin - 1 >= max_nodes;
  };
  const auto odd_leaf = [&](const Leaf& a, const Leaf& b) {
    return is_odd(first_of(a), first_of(b));
  };
  if (leaves_.empty()) return entries_ == 0;
  return first_of(leaves_.front()) == 0 && !is_odd(first_of(leaves_.back()), entries_) &&
         std::ranges::adjacent_find(leaves_, odd_leaf) == leaves_.end() &&
         std::ranges::all_of(leaves_, [&](const Leaf& leaf) { return page_of(leaf) < pages; });
}

LeafTable::FoundLeaf LeafTable::find(std::uint64_t entry) const {
  const auto behind = std::ranges::upper_bound(leaves_, entry, {}, first_of);
  const Leaf& leaf = *(behind - 1);
  const std::uint64_t end = behind == leaves_.end() ? entries_ : first_of(*behind);
  return {{page_of(leaf), static_cast<unsigned>(end - first_of(leaf))}, first_of(leaf)};
}

}  // namespace millrace
