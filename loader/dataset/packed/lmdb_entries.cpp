// SPDX-License-Identifier: Apache-2.0
//
// Trees with any keys: a walk over their leaf pages, and their entries.
#include <algorithm>
#include <string>
#include <vector>

#include "dataset/packed/lmdb_pages.h"

namespace millrace {
using namespace lmdb;

namespace {

std::uint64_t integer(std::span<const std::byte> key) {
  return key.size() == sizeof(std::uint64_t) ? load<std::uint64_t>(key.data())
                                             : load<std::uint32_t>(key.data());
}

bool is_integer(std::span<const std::byte> key) {
  return key.size() == sizeof(std::uint64_t) || key.size() == sizeof(std::uint32_t);
}

}  // namespace

bool lmdb_key_less(std::uint16_t flags, std::span<const std::byte> a,
                   std::span<const std::byte> b) {
  if ((flags & integer_keys) != 0 && a.size() == b.size() && is_integer(a))
    return integer(a) < integer(b);
  if ((flags & reversed_keys) != 0)
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  const std::size_t both = std::min(a.size(), b.size());
  const int order = both == 0 ? 0 : std::memcmp(a.data(), b.data(), both);
  return order != 0 ? order < 0 : a.size() < b.size();
}

/// One walk over the leaves of a tree.
class LmdbPages::Walk {
 public:
  Walk(const LmdbPages& file, const LmdbTree& tree, const std::function<void(LmdbLeaf)>& leaf,
       const std::function<void(std::span<const std::uint64_t>)>& soon)
      : file_(file), tree_(tree), leaf_(leaf), soon_(soon) {}

  void run();

 private:
  using Key = std::vector<std::byte>;

  void branch(std::uint64_t number, unsigned level);
  void leaf(std::uint64_t number);
  void check_follows(std::uint64_t page, std::span<const std::byte> before,
                     std::span<const std::byte> key) const;

  const LmdbPages& file_;
  const LmdbTree& tree_;
  const std::function<void(LmdbLeaf)>& leaf_;
  const std::function<void(std::span<const std::uint64_t>)>& soon_;
  std::uint64_t entries_ = 0, branches_ = 0, leaves_ = 0;
  /// The last key, and the lower bound of the next key, which branch pages state; empty if unknown.
  Key last_, least_;
};

void LmdbPages::walk_leaves(const LmdbTree& tree, const std::function<void(LmdbLeaf)>& leaf,
                            const std::function<void(std::span<const std::uint64_t>)>& soon) const {
  Walk(*this, tree, leaf, soon).run();
}

void LmdbPages::Walk::run() {
  if (tree_.depth == 0 ? tree_.root != LmdbTree::no_page : tree_.depth > max_depth)
    throw_damage(tree_.root, "is the root of an impossible tree");
  if (tree_.depth == 1) leaf(tree_.root);
  if (tree_.depth > 1) branch(tree_.root, 1);
  if (entries_ != tree_.entries || branches_ != tree_.branches || leaves_ != tree_.leaves)
    throw_damage(tree_.root, "is the root of a tree that is not as large as it should be");
}

void LmdbPages::Walk::branch(std::uint64_t number, unsigned level) {
  if (++branches_ > tree_.branches) throw_damage(number, "is one branch page too many in its tree");
  const Page mapped = file_.page(number, branch_page);
  // If the file is not mapped, reading the child pages overwrites this page.
  const std::vector<std::byte> copy(mapped.begin, mapped.begin + file_.page_bytes_);
  const Page page{number, copy.data(), mapped.nodes, mapped.upper};
  const bool is_last = level + 1U == tree_.depth;
  if (is_last && soon_) {
    std::vector<std::uint64_t> below(page.nodes);
    for (unsigned at = 0; at < page.nodes; ++at) below[at] = file_.node(page, at).child();
    soon_(below);
  }
  for (unsigned at = 0; at < page.nodes; ++at) {
    const Node node = file_.node(page, at);
    // LMDB does not use the key of node 0 of a branch page.
    if (at > 0) {
      check_follows(number, last_, node.key);
      least_.assign(node.key.begin(), node.key.end());
    }
    if (is_last)
      leaf(node.child());
    else
      branch(node.child(), level + 1);
  }
}

void LmdbPages::Walk::leaf(std::uint64_t number) {
  if (++leaves_ > tree_.leaves) throw_damage(number, "is one leaf page too many in its tree");
  const Page page = file_.page(number, leaf_page);
  entries_ += page.nodes;
  std::span<const std::byte> before = last_;
  for (unsigned at = 0; at < page.nodes; ++at) {
    const Node node = file_.entry(page, at);
    (void)file_.range(node, node.has_pages());
    check_follows(number, before, node.key);
    if (at == 0 && !least_.empty() && lmdb_key_less(tree_.flags, node.key, least_))
      throw_damage(number, "has keys that are out of order");
    before = node.key;
  }
  last_.assign(before.begin(), before.end());
  leaf_({number, page.nodes});
}

void LmdbPages::Walk::check_follows(std::uint64_t page, std::span<const std::byte> before,
                                    std::span<const std::byte> key) const {
  if ((tree_.flags & integer_keys) != 0 && !is_integer(key))
    throw_damage(page, "has a key that is not a number");
  if (!before.empty() && !lmdb_key_less(tree_.flags, before, key))
    throw_damage(page, "has keys that are out of order");
}

LmdbPages::Node LmdbPages::entry(const Page& leaf, unsigned at) const {
  const Node found = node(leaf, at);
  if (found.key.empty()) throw_damage(leaf.number, "has an empty key");
  if (found.key.size() > max_key_bytes)
    throw_damage(leaf.number, "has a key of more than the 511 bytes that LMDB has by default");
  if ((found.flags() & ~(value_has_pages | value_is_tree)) != 0)
    throw_damage(leaf.number, "has a value of an unknown kind");
  return found;
}

LmdbPages::Node LmdbPages::entry(LmdbLeaf leaf, unsigned at) const {
  const Page found = page(leaf.page, leaf_page);
  if (found.nodes != leaf.entries || at >= leaf.entries)
    throw_damage(leaf.page, "holds another number of entries than the pages that lead to it say");
  return entry(found, at);
}

std::span<const std::byte> LmdbPages::entry_key(LmdbLeaf leaf, unsigned at) const {
  return entry(leaf, at).key;
}

LmdbPages::Node LmdbPages::entry_with_value(LmdbLeaf leaf, unsigned at) const {
  const Node found = entry(leaf, at);
  if ((found.flags() & value_is_tree) != 0)
    throw_damage(leaf.page, "has a database in the place of a value");
  return found;
}

std::span<const std::byte> LmdbPages::entry_value(LmdbLeaf leaf, unsigned at) const {
  return value(entry_with_value(leaf, at));
}

FileRange LmdbPages::locate_entry(LmdbLeaf leaf, unsigned at) const {
  const Node found = entry_with_value(leaf, at);
  return range(found, found.has_pages());
}

bool LmdbPages::entry_is_tree(LmdbLeaf leaf, unsigned at) const {
  return (entry(leaf, at).flags() & value_is_tree) != 0;
}

std::pair<LmdbLeaf, unsigned> LmdbPages::entry_near(const LmdbTree& tree, double share) const {
  if (tree.depth == 0 || tree.depth > max_depth)
    throw_damage(tree.root, "is the root of an impossible tree");
  std::uint64_t number = tree.root;
  // Chooses a node by its share, and leaves in `share` the position within that node.
  const auto choose = [&share](unsigned nodes) {
    const double place = share * nodes;
    const unsigned chosen = std::min(static_cast<unsigned>(std::max(place, 0.0)), nodes - 1);
    share = std::clamp(place - chosen, 0.0, 1.0);
    return chosen;
  };
  for (unsigned level = 1; level < tree.depth; ++level) {
    const Page found = page(number, branch_page);
    number = node(found, choose(found.nodes)).child();
  }
  const Page leaf = page(number, leaf_page);
  return {{number, leaf.nodes}, choose(leaf.nodes)};
}

}  // namespace millrace
