// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/read_ahead.h"

// Reads LMDB's file format (data version 1, 64 bit, little-endian; struct MDB_page, MDB_node,
// MDB_db and MDB_meta of LMDB 0.9's mdb.c). LMDB itself does not check its pages: a flipped bit can
// lead it outside of a page or of the map. Here every number is checked before it is used. The
// checks read only cache lines that are needed anyway.

namespace millrace {

namespace lmdb {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

constexpr std::uint16_t branch_page = 0x01;
constexpr std::uint16_t leaf_page = 0x02;
constexpr std::uint16_t value_page = 0x04;  // first page of a large value
constexpr std::uint16_t meta_page = 0x08;

constexpr std::uint16_t value_has_pages = 0x01;  // in pages of its own, with a header
constexpr std::uint16_t value_is_tree = 0x02;

// Flags of a tree.
constexpr std::uint16_t reversed_keys = 0x02;
constexpr std::uint16_t several_values = 0x04;
constexpr std::uint16_t integer_keys = 0x08;

constexpr std::uint32_t lmdb_magic = 0xBEEFC0DE;  // after a meta page's header
constexpr std::size_t page_header_bytes = 16;
constexpr std::size_t node_header_bytes = 8;
constexpr std::size_t tree_bytes = 48;
constexpr std::size_t max_key_bytes = 511;

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace lmdb

/// Thrown if a page contains an impossible value. The message names the page.
struct LmdbDamage : std::runtime_error {
  LmdbDamage(std::uint64_t number, const std::string& message)
      : std::runtime_error(message), page(number) {}
  /// Status of a record that this page leads to.
  Status record_status() const {
    return Status::bad(std::string("the file's pages that lead to it are damaged: ") + what());
  }
  std::uint64_t page;
};

/// Reads from a file that is not mapped. For one thread.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  /// Returns bytes within the file, valid until the next call.
  virtual const std::byte* read(FileRange range) = 0;
};

[[noreturn, gnu::cold, gnu::noinline]] void throw_damage(std::uint64_t page, const char* what);

/// The tree of pages of one database.
struct LmdbTree {
  /// The root of an empty tree.
  static constexpr std::uint64_t no_page = UINT64_MAX;

  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t entries = 0;
  std::uint64_t root = 0;
  /// Number of pages of each kind.
  std::uint64_t branches = 0;
  std::uint64_t leaves = 0;
  std::uint64_t value_pages = 0;
};

/// One of the two meta pages. Each is the root of a committed state of the file.
struct LmdbMeta {
  static constexpr std::size_t bytes = 152;

  std::uint32_t page_bytes = 0;
  std::uint64_t last_page = 0;
  std::uint64_t transaction = 0;
  /// The main database, whose entries lead to the named ones.
  LmdbTree main;
  /// The freed pages, by transaction.
  LmdbTree free;
};

LmdbTree parse_lmdb_tree(const std::byte* at);
/// Parses the first bytes of a meta page; nullopt unless they are a meta page of LMDB.
std::optional<LmdbMeta> parse_lmdb_meta(std::span<const std::byte, LmdbMeta::bytes> page);

/// Cache of the leaf page where a record was found, and its range of keys. The next record is most
/// likely in the same page.
struct LmdbLeafRange {
  std::uint64_t first = 0;
  /// One past the last key; equal to `first` if no page is known.
  std::uint64_t end = 0;
  std::uint64_t leaf = 0;
};

/// A leaf page and the number of its entries.
struct LmdbLeaf {
  std::uint64_t page = 0;
  unsigned entries = 0;
};

/// Returns whether `a` precedes `b` in a tree with these flags. Depending on the flags, keys are
/// compared as bytes, as bytes in reverse order, or as numbers if both have 4 or both have 8 bytes
/// (LMDB's mdb_cmp_memn, mdb_cmp_memnr, mdb_cmp_cint).
bool lmdb_key_less(std::uint16_t flags, std::span<const std::byte> a, std::span<const std::byte> b);

/// View of the pages of a file that LMDB wrote; the file's bytes must outlive it. Immutable. Every
/// call throws `LmdbDamage` if the pages that it needs contradict themselves, each other or the
/// file's length, and the errors of `FileBytes`. Returned bytes lie in the file's memory, or are
/// valid until the next call. The time of a lookup is bounded by the depth of the deepest possible
/// tree.
class LmdbPages {
 public:
  /// LMDB's own limit for the depth of a tree.
  static constexpr std::uint16_t max_depth = 32;

  LmdbPages() = default;
  /// `file`: whole pages of `page_bytes` bytes.
  LmdbPages(std::span<const std::byte> file, std::uint32_t page_bytes)
      : map_(file.data()), page_bytes_(page_bytes), pages_(file.size() / page_bytes) {}
  LmdbPages(FileBytes& file, std::uint64_t pages, std::uint32_t page_bytes)
      : file_(&file), page_bytes_(page_bytes), pages_(pages) {}

  /// Finds the database `name` in the main one; nullopt if it does not exist.
  std::optional<LmdbTree> find_tree(const LmdbTree& main, std::string_view name) const;
  /// Finds the value of a key in a database of text keys; nullopt if the key does not exist.
  std::optional<std::span<const std::byte>> find_value(const LmdbTree& tree,
                                                       std::string_view key) const;

  /// Returns the value of `index` in a database whose keys are the integers from 0 to
  /// `tree.entries` - 1. The record must be at the position that follows from the branch pages,
  /// under its own key. `place` must be new or from a call with the same tree.
  std::span<const std::byte> find_record(const LmdbTree& tree, std::uint64_t index,
                                         LmdbLeafRange& place) const;
  /// Returns the byte range of that value. Pages that contain nothing but the value are neither
  /// touched nor checked.
  FileRange locate_record(const LmdbTree& tree, std::uint64_t index, LmdbLeafRange& place) const;

  /// Calls `leaf` for each leaf page in order, in a tree with any keys. Before that, calls `soon`
  /// with the leaves of one branch page at a time. Checks page kinds, bounds, key order, key
  /// lengths and the positions of values. Pages that contain nothing but a value are not touched.
  void walk_leaves(const LmdbTree& tree, const std::function<void(LmdbLeaf)>& leaf,
                   const std::function<void(std::span<const std::uint64_t>)>& soon) const;
  /// Finds an entry that has about the fraction `share` (0 to 1) of all entries before it,
  /// estimated from the branch pages. Returns its leaf and its index in the leaf. The tree must not
  /// be empty.
  std::pair<LmdbLeaf, unsigned> entry_near(const LmdbTree& tree, double share) const;
  /// Key of entry `at` (< `leaf.entries`) of a leaf page. `leaf.entries` must be right.
  std::span<const std::byte> entry_key(LmdbLeaf leaf, unsigned at) const;
  std::span<const std::byte> entry_value(LmdbLeaf leaf, unsigned at) const;
  /// Returns the byte range of the entry's value. Pages that contain nothing but the value are not
  /// touched.
  FileRange locate_entry(LmdbLeaf leaf, unsigned at) const;
  /// Returns whether the entry is a named database.
  bool entry_is_tree(LmdbLeaf leaf, unsigned at) const;

  /// Checks everything that LMDB relies on when it writes to a file with at least one commit: both
  /// meta pages, and each page that they lead to. Nodes must fill their pages, keys must be in
  /// order, and no page may be used twice, or be both used and free. Only for a file in memory.
  void check() const;

 private:
  /// A branch or leaf page: its header, the nodes' offsets, free space, then the nodes to its end.
  struct Page {
    std::uint64_t number;
    const std::byte* begin;
    /// Number of nodes, at least 1.
    unsigned nodes;
    /// Offset of the first node.
    unsigned upper;
  };
  /// A key with its child page (in branch pages) or value. The header and the key lie in the page.
  struct Node {
    std::uint64_t page;
    const std::byte* begin;
    std::span<const std::byte> key;
    /// The bytes after the key, to the page's end.
    std::span<const std::byte> rest;

    std::uint32_t value_bytes() const { return lmdb::load<std::uint32_t>(begin); }
    std::uint16_t flags() const { return lmdb::load<std::uint16_t>(begin + 4); }
    bool has_pages() const { return (flags() & lmdb::value_has_pages) != 0; }
    /// The highest bits of the page number are stored in place of the flags.
    std::uint64_t child() const { return lmdb::load<std::uint64_t>(begin) & 0xFFFF'FFFF'FFFF; }
  };
  class Check;
  class Walk;

  const std::byte* bytes(FileRange range) const {
    return file_ != nullptr ? file_->read(range) : map_ + range.offset;
  }
  Page page(std::uint64_t number, std::uint16_t flags) const;
  Node node(const Page& page, unsigned at) const;
  std::uint64_t integer_key(const Page& page, unsigned at) const;
  LmdbLeafRange place_of(const LmdbTree& tree, std::uint64_t index) const;
  Node integer_node(const LmdbTree& tree, std::uint64_t index, LmdbLeafRange& place) const;
  std::optional<Node> text_node(const LmdbTree& tree, std::string_view key) const;
  Node entry(const Page& leaf, unsigned at) const;
  Node entry(LmdbLeaf leaf, unsigned at) const;
  Node entry_with_value(LmdbLeaf leaf, unsigned at) const;
  FileRange range(const Node& node, bool has_pages) const;
  std::span<const std::byte> value(const Node& node) const;

  // Exactly one of these two is set.
  const std::byte* map_ = nullptr;
  FileBytes* file_ = nullptr;
  std::uint32_t page_bytes_ = 0;
  std::uint64_t pages_ = 0;
};

}  // namespace millrace
