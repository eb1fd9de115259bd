// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Reading of LMDB's file format (data version 1, 64 bit, little-endian; struct MDB_page, MDB_node,
// MDB_db and MDB_meta of LMDB 0.9's mdb.c). LMDB itself trusts its pages: a flipped bit can lead it
// outside of a page or of the map. Here nothing is believed that was not compared first, and what
// is compared lies on cache lines that are read anyway.

namespace millrace {

namespace lmdb {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

constexpr std::uint16_t branch_page = 0x01;
constexpr std::uint16_t leaf_page = 0x02;
constexpr std::uint16_t value_page = 0x04;  // the first of a value's own
constexpr std::uint16_t meta_page = 0x08;

constexpr std::uint16_t value_has_pages = 0x01;  // of its own, behind a header
constexpr std::uint16_t value_is_tree = 0x02;

// Of a tree's flags.
constexpr std::uint16_t reversed_keys = 0x02;
constexpr std::uint16_t several_values = 0x04;
constexpr std::uint16_t integer_keys = 0x08;

constexpr std::uint32_t lmdb_magic = 0xBEEFC0DE;  // behind a meta page's header
constexpr std::size_t page_header_bytes = 16;
constexpr std::size_t node_header_bytes = 8;
constexpr std::size_t tree_bytes = 48;
constexpr std::size_t most_key_bytes = 511;

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace lmdb

/// The file is damaged, since what a page says cannot be. The message names the page.
struct LmdbDamage : std::runtime_error {
  LmdbDamage(std::uint64_t number, const std::string& message)
      : std::runtime_error(message), page(number) {}
  std::uint64_t page;
};

/// Reads a file that is not mapped, for one thread.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  /// Bytes that lie in the file, valid until the next call.
  virtual const std::byte* read(FileRange range) = 0;
};

[[noreturn, gnu::cold, gnu::noinline]] void throw_damage(std::uint64_t page, const char* what);

/// The tree of pages of one database.
struct LmdbTree {
  /// The root of a tree without entries.
  static constexpr std::uint64_t no_page = UINT64_MAX;

  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t entries = 0;
  std::uint64_t root = 0;
  /// How many pages of each kind it has.
  std::uint64_t branches = 0;
  std::uint64_t leaves = 0;
  std::uint64_t value_pages = 0;
};

/// One of the two meta pages, each the entrance to a committed state of the file.
struct LmdbMeta {
  static constexpr std::size_t bytes = 152;

  std::uint32_t page_bytes = 0;
  std::uint64_t last_page = 0;
  std::uint64_t transaction = 0;
  /// The database that leads to the named ones.
  LmdbTree main;
  /// Which pages were let go, by transaction.
  LmdbTree free;
};

LmdbTree parse_lmdb_tree(const std::byte* at);
/// Reads a meta page's first bytes; nullopt if they are none of LMDB's.
std::optional<LmdbMeta> parse_lmdb_meta(std::span<const std::byte, LmdbMeta::bytes> page);

/// The leaf page where a record was found, by the keys that lead to it: the next record is most
/// likely there, too.
struct LmdbPlace {
  std::uint64_t first = 0;
  /// Behind the last key; it is `first` if no page is known.
  std::uint64_t end = 0;
  std::uint64_t leaf = 0;
};

/// A leaf page with so many entries.
struct LmdbLeaf {
  std::uint64_t page = 0;
  unsigned entries = 0;
};

/// Whether `a` comes before `b` in a tree with these flags: as bytes, as bytes from the last one,
/// or as numbers, if both have 4 or both 8 bytes (LMDB's mdb_cmp_memn, mdb_cmp_memnr,
/// mdb_cmp_cint).
bool lmdb_key_less(std::uint16_t flags, std::span<const std::byte> a, std::span<const std::byte> b);

/// The pages of a file that LMDB wrote. A view: the file's bytes must outlive it. Immutable. Every
/// call throws `LmdbDamage` if the pages that lead to what is asked for contradict themselves,
/// each other or the file's length, and what `FileBytes` throws; what is returned lies in the
/// file's bytes, or is valid until the next call. No call takes longer than the deepest possible
/// tree.
class LmdbPages {
 public:
  /// LMDB's own limit for a tree's depth.
  static constexpr std::uint16_t max_depth = 32;

  LmdbPages() = default;
  /// `file`: whole pages of `page_bytes`.
  LmdbPages(std::span<const std::byte> file, std::uint32_t page_bytes)
      : map_(file.data()), page_bytes_(page_bytes), pages_(file.size() / page_bytes) {}
  LmdbPages(FileBytes& file, std::uint64_t pages, std::uint32_t page_bytes)
      : file_(&file), page_bytes_(page_bytes), pages_(pages) {}

  /// The named database `name` of the main one; nullopt if there is none.
  std::optional<LmdbTree> find_tree(const LmdbTree& main, std::string_view name) const;
  /// The value of a key in a database of text keys; nullopt if there is none.
  std::optional<std::span<const std::byte>> find_value(const LmdbTree& tree,
                                                       std::string_view key) const;

  /// The value of `index` in a database whose keys are the integers from 0 to `tree.entries` - 1,
  /// in the place where the branch pages say it must be and under its own key. `place` is of this
  /// tree, or new.
  std::span<const std::byte> find_record(const LmdbTree& tree, std::uint64_t index,
                                         LmdbPlace& place) const;
  /// Where it lies. Pages that hold nothing but the value are not touched, and not checked.
  FileRange locate_record(const LmdbTree& tree, std::uint64_t index, LmdbPlace& place) const;

  /// Calls `leaf` for each leaf page of a tree with any keys, in their order. `soon`, before that,
  /// for those that belong to one branch page. Compares kinds, bounds, the order of all keys, their
  /// lengths and where values lie. Pages that hold nothing but a value are not touched.
  void walk_leaves(const LmdbTree& tree, const std::function<void(LmdbLeaf)>& leaf,
                   const std::function<void(std::span<const std::uint64_t>)>& soon) const;
  /// About the entry that has this share (0 to 1) of the tree's entries before it, by the branch
  /// pages: its leaf and its number there. The tree has entries.
  std::pair<LmdbLeaf, unsigned> entry_near(const LmdbTree& tree, double share) const;
  /// Entry `at` (< `leaf.entries`) of a leaf page that has so many.
  std::span<const std::byte> entry_key(LmdbLeaf leaf, unsigned at) const;
  std::span<const std::byte> entry_value(LmdbLeaf leaf, unsigned at) const;
  /// Where its value lies. Pages that hold nothing but that are not touched.
  FileRange locate_entry(LmdbLeaf leaf, unsigned at) const;
  /// Whether it is a database of its own, by its name.
  bool entry_is_tree(LmdbLeaf leaf, unsigned at) const;

  /// Checks all that LMDB trusts when it writes to the file, which something was committed to: both
  /// meta pages, and each page that they lead to. Nodes fill their pages, keys are in order, and no
  /// page belongs to two or is free, too. Only for a file in memory.
  void check() const;

 private:
  /// A branch or leaf page: its header, then the nodes' offsets, then free space, then the nodes to
  /// its end.
  struct Page {
    std::uint64_t number;
    const std::byte* begin;
    /// Nodes, at least one.
    unsigned nodes;
    /// Where the nodes begin.
    unsigned upper;
  };
  /// A key with what belongs to it, a page below (in branch pages) or a value; the header and the
  /// key lie in the page.
  struct Node {
    std::uint64_t page;
    const std::byte* begin;
    std::span<const std::byte> key;
    /// To the page's end.
    std::span<const std::byte> rest;

    std::uint32_t value_bytes() const { return lmdb::load<std::uint32_t>(begin); }
    std::uint16_t flags() const { return lmdb::load<std::uint16_t>(begin + 4); }
    bool has_pages() const { return (flags() & lmdb::value_has_pages) != 0; }
    /// The flags' place holds the number's highest bits.
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
  LmdbPlace place_of(const LmdbTree& tree, std::uint64_t index) const;
  Node integer_node(const LmdbTree& tree, std::uint64_t index, LmdbPlace& place) const;
  std::optional<Node> text_node(const LmdbTree& tree, std::string_view key) const;
  Node entry(const Page& leaf, unsigned at) const;
  Node entry(LmdbLeaf leaf, unsigned at) const;
  Node entry_with_value(LmdbLeaf leaf, unsigned at) const;
  FileRange range(const Node& node, bool has_pages) const;
  std::span<const std::byte> value(const Node& node) const;

  // One of them.
  const std::byte* map_ = nullptr;
  FileBytes* file_ = nullptr;
  std::uint32_t page_bytes_ = 0;
  std::uint64_t pages_ = 0;
};

}  // namespace millrace
