// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/lmdb_pages.h"

#include <string>

namespace millrace {
using namespace lmdb;

namespace {

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void throw_damage(std::uint64_t page, const char* what) {
  throw LmdbDamage(page, "page " + std::to_string(page) + " " + what);
}

LmdbTree parse_lmdb_tree(const std::byte* at) {
  return {.flags = load<std::uint16_t>(at + 4),
          .depth = load<std::uint16_t>(at + 6),
          .entries = load<std::uint64_t>(at + 32),
          .root = load<std::uint64_t>(at + 40),
          .branches = load<std::uint64_t>(at + 8),
          .leaves = load<std::uint64_t>(at + 16),
          .value_pages = load<std::uint64_t>(at + 24)};
}

std::optional<LmdbMeta> parse_lmdb_meta(std::span<const std::byte, LmdbMeta::bytes> page) {
  constexpr std::uint32_t data_version = 1;
  const LmdbMeta meta{.page_bytes = load<std::uint32_t>(page.data() + 40),
                      .last_page = load<std::uint64_t>(page.data() + 136),
                      .transaction = load<std::uint64_t>(page.data() + 144),
                      .main = parse_lmdb_tree(page.data() + 88),
                      .free = parse_lmdb_tree(page.data() + 40)};
  if (load<std::uint32_t>(page.data() + 16) != lmdb_magic ||
      load<std::uint32_t>(page.data() + 20) != data_version)
    return {};
  if (!std::has_single_bit(meta.page_bytes) || meta.page_bytes < 512 || meta.page_bytes > 65536)
    return {};
  return meta;
}

LmdbPages::Page LmdbPages::page(std::uint64_t number, std::uint16_t flags) const {
  if (number >= pages_) throw_damage(number, "is asked for, but lies behind the end of the file");
  const std::byte* begin = bytes({number * page_bytes_, page_bytes_});
  if (load<std::uint64_t>(begin) != number) throw_damage(number, "has another page's number");
  if (load<std::uint16_t>(begin + 10) != flags)
    throw_damage(number, flags == leaf_page ? "should be a leaf page but is not"
                                            : "should be a branch page but is not");
  const unsigned lower = load<std::uint16_t>(begin + 12);
  const unsigned upper = load<std::uint16_t>(begin + 14);
  if (lower < page_header_bytes + 2 || lower % 2 != 0 || lower > upper || upper > page_bytes_)
    throw_damage(number, "has impossible bounds");
  return {number, begin, static_cast<unsigned>((lower - page_header_bytes) / 2), upper};
}

LmdbPages::Node LmdbPages::node(const Page& page, unsigned at) const {
  const unsigned offset = load<std::uint16_t>(page.begin + page_header_bytes + std::size_t{2} * at);
  if (offset < page.upper || offset + node_header_bytes > page_bytes_)
    throw_damage(page.number, "has a node outside of itself");
  const std::byte* begin = page.begin + offset;
  const std::size_t room = page_bytes_ - offset - node_header_bytes;
  const std::size_t key_bytes = load<std::uint16_t>(begin + 6);
  if (key_bytes > room) throw_damage(page.number, "has a key that reaches beyond it");
  const std::byte* key = begin + node_header_bytes;
  return {page.number, begin, {key, key_bytes}, {key + key_bytes, room - key_bytes}};
}

std::uint64_t LmdbPages::integer_key(const Page& page, unsigned at) const {
  const Node found = node(page, at);
  if (found.key.size() != sizeof(std::uint64_t))
    throw_damage(page.number, "has a key that is not a number");
  return load<std::uint64_t>(found.key.data());
}

LmdbLeafRange LmdbPages::place_of(const LmdbTree& tree, std::uint64_t index) const {
  // Narrows the range of keys from page to page. Keys have no gaps, and records are never removed,
  // so a leaf's first key is the key of its branch node. This gives a record's position on its
  // leaf.
  LmdbLeafRange place{.first = 0, .end = tree.entries, .leaf = tree.root};
  if (index >= tree.entries || tree.depth == 0 || tree.depth > max_depth)
    throw_damage(tree.root, "is the root of an impossible tree");
  for (unsigned level = 1; level < tree.depth; ++level) {
    const Page branch = page(place.leaf, branch_page);
    unsigned below = 0;  // the key of node 0 is unused
    for (unsigned above = branch.nodes; above - below > 1;) {
      const unsigned middle = below + (above - below) / 2;
      const std::uint64_t key = integer_key(branch, middle);
      if (key <= index) {
        below = middle;
        place.first = key;
      } else {
        above = middle;
        place.end = key;
      }
    }
    place.leaf = node(branch, below).child();
  }
  return place;
}

LmdbPages::Node LmdbPages::integer_node(const LmdbTree& tree, std::uint64_t index,
                                        LmdbLeafRange& place) const {
  if (index < place.first || index >= place.end) place = place_of(tree, index);
  const Page leaf = page(place.leaf, leaf_page);
  const std::uint64_t at = index - place.first;
  if (at >= leaf.nodes)
    throw_damage(leaf.number, "holds fewer records than the pages that lead to it say");
  const Node found = node(leaf, static_cast<unsigned>(at));
  if (found.key.size() != sizeof index || load<std::uint64_t>(found.key.data()) != index)
    throw_damage(leaf.number, "has another key in this record's place");
  if ((found.flags() & ~value_has_pages) != 0)
    throw_damage(leaf.number, "has a value of an unknown kind");
  return found;
}

std::optional<LmdbPages::Node> LmdbPages::text_node(const LmdbTree& tree,
                                                    std::string_view key) const {
  if (tree.entries == 0) return {};
  std::uint64_t number = tree.root;
  if (tree.depth == 0 || tree.depth > max_depth)
    throw_damage(number, "is the root of an impossible tree");
  for (unsigned level = 1; level < tree.depth; ++level) {
    const Page branch = page(number, branch_page);
    unsigned below = 0;
    while (below + 1 < branch.nodes && text(node(branch, below + 1).key) <= key) ++below;
    number = node(branch, below).child();
  }
  const Page leaf = page(number, leaf_page);
  for (unsigned at = 0; at < leaf.nodes; ++at)
    if (const Node found = node(leaf, at); text(found.key) == key) return found;
  return {};
}

FileRange LmdbPages::range(const Node& node, bool has_pages) const {
  const std::size_t bytes = node.value_bytes();
  if ((has_pages ? sizeof(std::uint64_t) : bytes) > node.rest.size())
    throw_damage(node.page, "has a value that reaches beyond it");
  if (!has_pages) return {(node.page + 1) * page_bytes_ - node.rest.size(), bytes};
  const auto number = load<std::uint64_t>(node.rest.data());
  if (number >= pages_ || page_header_bytes + bytes > (pages_ - number) * page_bytes_)
    throw_damage(node.page, "has a value that reaches beyond the end of the file");
  return {number * page_bytes_ + page_header_bytes, bytes};
}

std::span<const std::byte> LmdbPages::value(const Node& node) const {
  // The flag is read only once, because the mapped file may change.
  const bool has_pages = node.has_pages();
  const FileRange at = range(node, has_pages);
  if (!has_pages) return node.rest.first(at.bytes);
  const std::uint64_t number = at.offset / page_bytes_;
  const std::byte* header = bytes({at.offset - page_header_bytes, page_header_bytes});
  if (load<std::uint64_t>(header) != number || load<std::uint16_t>(header + 10) != value_page)
    throw_damage(number, "should begin a value but does not");
  if (std::uint64_t{load<std::uint32_t>(header + 12)} * page_bytes_ < page_header_bytes + at.bytes)
    throw_damage(number, "begins a value of another length");
  return {bytes(at), at.bytes};
}

std::optional<LmdbTree> LmdbPages::find_tree(const LmdbTree& main, std::string_view name) const {
  const std::optional<Node> found = text_node(main, name);
  if (!found || found->flags() != value_is_tree) return {};
  const std::span<const std::byte> tree = value(*found);
  if (tree.size() != tree_bytes) throw_damage(found->page, "has a database of another length");
  return parse_lmdb_tree(tree.data());
}

std::optional<std::span<const std::byte>> LmdbPages::find_value(const LmdbTree& tree,
                                                                std::string_view key) const {
  const std::optional<Node> found = text_node(tree, key);
  if (!found) return {};
  if ((found->flags() & ~value_has_pages) != 0)
    throw_damage(found->page, "has a value of an unknown kind");
  return value(*found);
}

FileRange LmdbPages::locate_record(const LmdbTree& tree, std::uint64_t index,
                                   LmdbLeafRange& place) const {
  const Node node = integer_node(tree, index, place);
  return range(node, node.has_pages());
}

std::span<const std::byte> LmdbPages::find_record(const LmdbTree& tree, std::uint64_t index,
                                                  LmdbLeafRange& place) const {
  return value(integer_node(tree, index, place));
}

}  // namespace millrace
