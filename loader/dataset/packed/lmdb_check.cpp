// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "dataset/packed/lmdb_pages.h"

namespace millrace {
using namespace lmdb;

/// One walk over all pages that the newest meta page leads to.
class LmdbPages::Check {
 public:
  explicit Check(const LmdbPages& file) : file_(file), used_(file.pages_) {}

  void run();

 private:
  /// State of the walk over one tree: the last key, and the pages and entries counted so far.
  struct Walk {
    const LmdbTree& tree;
    const std::function<void(const Node&)>& look;
    LmdbTree found = {};
    std::optional<std::span<const std::byte>> last = {};
    /// Lower bound of the next key, from the branch pages.
    std::optional<std::span<const std::byte>> least = {};
  };

  LmdbMeta newest() const;
  void tree(const LmdbTree& tree, const std::function<void(const Node&)>& look);
  void walk(std::uint64_t number, std::uint16_t level, Walk& walk);
  void leaf_node(const Node& node, Walk& walk);
  void named_tree(const Node& node);
  void free_pages(const Node& node, std::uint64_t newest_transaction);
  void check_filled(const Page& page, bool is_leaf);
  void mark_used(std::uint64_t first, std::uint64_t pages);

  const LmdbPages& file_;
  std::vector<bool> used_;
  /// Offset and length of a page's nodes. A member, to reuse its memory.
  std::vector<std::pair<std::size_t, std::size_t>> nodes_;
};

void LmdbPages::check() const { Check(*this).run(); }

void LmdbPages::Check::run() {
  const LmdbMeta meta = newest();
  mark_used(0, 2);
  // Mask of a tree's flags; the other bits belong to the environment.
  constexpr std::uint16_t tree_flags_mask = 0x7F;
  if ((meta.free.flags & tree_flags_mask) != integer_keys || meta.main.flags != 0)
    throw_damage(meta.transaction % 2, "is the root of an impossible tree");
  tree(meta.main, [this](const Node& node) { named_tree(node); });
  LmdbTree free = meta.free;
  free.flags = integer_keys;
  tree(free, [&](const Node& node) { free_pages(node, meta.transaction); });
}

/// Returns the newer meta page. Commits write meta pages 0 and 1 alternately, so the pages must be
/// of the last two commits.
LmdbMeta LmdbPages::Check::newest() const {
  LmdbMeta metas[2];
  for (std::size_t page = 0; page < 2; ++page) {
    const std::byte* begin = file_.map_ + page * file_.page_bytes_;
    const auto meta =
        parse_lmdb_meta(std::span<const std::byte, LmdbMeta::bytes>(begin, LmdbMeta::bytes));
    if (!meta || meta->page_bytes != file_.page_bytes_ || load<std::uint64_t>(begin) != page ||
        load<std::uint16_t>(begin + 10) != meta_page || meta->transaction % 2 != page)
      throw_damage(page, "is not a sound meta page");
    metas[page] = *meta;
  }
  const bool second = metas[1].transaction > metas[0].transaction;
  if (metas[second ? 1 : 0].transaction != metas[second ? 0 : 1].transaction + 1)
    throw_damage(0, "and page 1 are not of two commits, one behind the other");
  return metas[second ? 1 : 0];
}

void LmdbPages::Check::tree(const LmdbTree& tree, const std::function<void(const Node&)>& look) {
  Walk done{tree, look};
  if (tree.depth == 0 ? tree.root != LmdbTree::no_page : tree.depth > max_depth)
    throw_damage(tree.root, "is the root of an impossible tree");
  if (tree.depth > 0) walk(tree.root, 1, done);
  if (done.found.entries != tree.entries || done.found.branches != tree.branches ||
      done.found.leaves != tree.leaves || done.found.value_pages != tree.value_pages)
    throw_damage(tree.root, "is the root of a tree that is not as large as it should be");
}

void LmdbPages::Check::walk(std::uint64_t number, std::uint16_t level, Walk& done) {
  const bool is_leaf = level == done.tree.depth;
  const Page page = file_.page(number, is_leaf ? leaf_page : branch_page);
  mark_used(number, 1);
  check_filled(page, is_leaf);
  ++(is_leaf ? done.found.leaves : done.found.branches);
  const auto less = [&](std::span<const std::byte> a, std::span<const std::byte> b) {
    if ((done.tree.flags & integer_keys) != 0) {
      if (a.size() != sizeof(std::uint64_t) || b.size() != a.size())
        throw_damage(number, "has a key that is not a number");
      return load<std::uint64_t>(a.data()) < load<std::uint64_t>(b.data());
    }
    return std::ranges::lexicographical_compare(a, b);
  };
  for (unsigned at = 0; at < page.nodes; ++at) {
    const Node node = file_.node(page, at);
    // LMDB does not use the key of node 0 of a branch page.
    if (is_leaf || at > 0) {
      if ((done.last && !less(*done.last, node.key)) ||
          (is_leaf && done.least && less(node.key, *done.least)))
        throw_damage(number, "has keys that are out of order");
      (is_leaf ? done.last : done.least) = node.key;
    }
    if (is_leaf)
      leaf_node(node, done);
    else
      walk(node.child(), static_cast<std::uint16_t>(level + 1), done);
  }
}

void LmdbPages::Check::leaf_node(const Node& node, Walk& done) {
  ++done.found.entries;
  if (node.has_pages()) {
    const std::byte* value = file_.value(node).data() - page_header_bytes;
    const auto pages = load<std::uint32_t>(value + 12);
    mark_used(load<std::uint64_t>(value), pages);
    done.found.value_pages += pages;
  }
  done.look(node);
}

void LmdbPages::Check::named_tree(const Node& node) {
  const std::span<const std::byte> value = file_.value(node);
  if (node.flags() != value_is_tree || value.size() != tree_bytes)
    throw_damage(node.page, "has a database of an unknown kind");
  tree(parse_lmdb_tree(value.data()), [](const Node& below) {
    if ((below.flags() & ~value_has_pages) != 0)
      throw_damage(below.page, "has a value of an unknown kind");
  });
}

/// Checks the list of pages that one transaction freed: a count, then the page numbers, descending.
void LmdbPages::Check::free_pages(const Node& node, std::uint64_t newest_transaction) {
  if (node.key.size() != sizeof(std::uint64_t))
    throw_damage(node.page, "has a key that is not a number");
  const auto transaction = load<std::uint64_t>(node.key.data());
  const std::span<const std::byte> list = file_.value(node);
  constexpr std::size_t number_bytes = sizeof(std::uint64_t);
  if ((node.flags() & ~value_has_pages) != 0 || transaction == 0 ||
      transaction > newest_transaction || list.size() < number_bytes ||
      load<std::uint64_t>(list.data()) > list.size() / number_bytes - 1)
    throw_damage(node.page, "has an impossible list of free pages");
  std::uint64_t before = file_.pages_;
  for (std::uint64_t n = 1; n <= load<std::uint64_t>(list.data()); ++n) {
    const auto number = load<std::uint64_t>(list.data() + n * number_bytes);
    if (number >= before) throw_damage(node.page, "has an impossible list of free pages");
    mark_used(number, 1);
    before = number;
  }
}

/// Checks that the nodes fill the page up to its end without gaps. LMDB relies on this when it
/// moves them.
void LmdbPages::Check::check_filled(const Page& page, bool is_leaf) {
  nodes_.clear();
  for (unsigned at = 0; at < page.nodes; ++at) {
    const Node node = file_.node(page, at);
    std::size_t bytes = node_header_bytes + node.key.size();
    if (is_leaf) bytes += node.has_pages() ? sizeof(std::uint64_t) : node.value_bytes();
    nodes_.emplace_back(static_cast<std::size_t>(node.begin - page.begin), bytes + bytes % 2);
  }
  std::ranges::sort(nodes_);
  std::size_t end = page.upper;
  for (const auto& [offset, bytes] : nodes_) {
    if (offset != end) throw_damage(page.number, "has nodes that overlap, or gaps between them");
    end += bytes;
  }
  if (end != file_.page_bytes_) throw_damage(page.number, "has nodes that do not end with it");
}

void LmdbPages::Check::mark_used(std::uint64_t first, std::uint64_t pages) {
  if (pages == 0 || first >= used_.size() || pages > used_.size() - first)
    throw_damage(first, "is asked for, but lies behind the end of the file");
  for (std::uint64_t page = first; page < first + pages; ++page) {
    if (used_[page]) throw_damage(page, "is used twice");
    used_[page] = true;
  }
}

}  // namespace millrace
