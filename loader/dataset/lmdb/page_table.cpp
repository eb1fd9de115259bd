// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/page_table.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/page_table.h>
#include <millrace/error.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "base/read_full.h"
#include "dataset/packed/atomic_file_writer.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::array<char, 8> table_format = {'M', 'R', 'p', 'a', 'g', 'e', 's', '1'};
constexpr std::uint64_t max_tables = 16;
constexpr std::size_t number_bytes = sizeof(std::uint64_t);
constexpr std::size_t header_bytes = 4 * number_bytes;
constexpr std::size_t table_header_bytes = 3 * number_bytes;

void put(Bytes& to, const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  to.insert(to.end(), begin, begin + bytes);
}

void put(Bytes& to, std::uint64_t number) { put(to, &number, sizeof number); }

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  return lmdb::load<std::uint64_t>(bytes.data() + at);
}

bool is_page_table(const fs::path& path) { return begins_with(path, table_format); }

/// The stored file's bytes without the checksum, or the reason why they are not used. Both are
/// empty if the file does not exist.
struct StoredTables {
  Bytes bytes{};
  std::string why_not{};
};

StoredTables read_stored(const fs::path& path, const LmdbFile& lmdb) {
  const FileDescriptor file = FileDescriptor::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const auto refuse = [](std::string why) { return StoredTables{{}, std::move(why)}; };
  if (!file && errno == ENOENT) return {};
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    return refuse("cannot be read: " + errno_text(errno));
  // Upper limit for the file's length. A longer file is refused without reading it.
  const std::uint64_t max_bytes =
      max_tables * (table_header_bytes + lmdb.pages() * sizeof(LeafTable::Leaf));
  const auto length = static_cast<std::uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || length < header_bytes + number_bytes ||
      length > header_bytes + max_bytes + number_bytes)
    return refuse("is not a table of this file's pages, or is cut short");
  StoredTables stored;
  stored.bytes.resize(length);
  if (read_full(file.get(), 0, stored.bytes) != length) return refuse("cannot be read");
  const std::size_t end = stored.bytes.size() - number_bytes;
  if (std::memcmp(stored.bytes.data(), table_format.data(), table_format.size()) != 0 ||
      number_at(stored.bytes, end) != XXH3_64bits(stored.bytes.data(), end))
    return refuse("is not a page table, or is damaged");
  if (number_at(stored.bytes, 8) != lmdb.meta().transaction ||
      number_at(stored.bytes, 16) != lmdb.bytes())
    return refuse("belongs to another state of the file");
  stored.bytes.resize(end);
  return stored;
}

std::optional<LeafTable> table_in(std::span<const std::byte> bytes, const LmdbTree& tree,
                                  std::uint64_t pages) {
  const std::uint64_t tables = number_at(bytes, 3 * number_bytes);
  std::size_t at = header_bytes;
  for (std::uint64_t n = 0; n < tables && bytes.size() - at >= table_header_bytes; ++n) {
    const std::uint64_t root = number_at(bytes, at);
    const std::uint64_t entries = number_at(bytes, at + number_bytes);
    const std::uint64_t leaves = number_at(bytes, at + 2 * number_bytes);
    at += table_header_bytes;
    if (leaves > (bytes.size() - at) / sizeof(LeafTable::Leaf)) return {};
    if (root == tree.root && entries == tree.entries && leaves == tree.leaves) {
      std::vector<LeafTable::Leaf> all(leaves);
      std::memcpy(all.data(), bytes.data() + at, leaves * sizeof(LeafTable::Leaf));
      LeafTable table(std::move(all), entries);
      return table.is_sound(pages) ? std::optional(std::move(table)) : std::nullopt;
    }
    at += leaves * sizeof(LeafTable::Leaf);
  }
  return {};
}

}  // namespace

fs::path page_table_path(const fs::path& file) { return resolved(file).string() + ".pages"; }

std::shared_ptr<const LeafTable> stored_or_made_table(const LmdbFile& file, const LmdbTree& tree,
                                                      std::vector<std::string>& warnings) {
  const fs::path path = page_table_path(file.name());
  StoredTables stored = read_stored(path, file);
  if (!stored.bytes.empty()) {
    if (auto table = table_in(stored.bytes, tree, file.pages()))
      return std::make_shared<const LeafTable>(std::move(*table));
    stored.why_not = "has no page table of this database";
  }
  if (!stored.why_not.empty()) {
    std::string warning = path.string() + " " + stored.why_not +
                          "; it is not used. `millrace index` makes a new one.";
    if (std::ranges::find(warnings, warning) == warnings.end())
      warnings.push_back(std::move(warning));
  }
  return std::make_shared<const LeafTable>(file, tree);
}

void store_tables(const std::vector<const Entries*>& databases) {
  const LmdbFile& file = databases.front()->file();
  Bytes bytes;
  put(bytes, table_format.data(), table_format.size());
  put(bytes, file.meta().transaction);
  put(bytes, file.bytes());
  put(bytes, databases.size());
  for (const Entries* entries : databases) {
    const std::span<const LeafTable::Leaf> leaves = entries->table().leaves();
    put(bytes, entries->tree().root);
    put(bytes, entries->table().entries());
    put(bytes, leaves.size());
    put(bytes, leaves.data(), leaves.size_bytes());
  }
  put(bytes, XXH3_64bits(bytes.data(), bytes.size()));
  AtomicFileWriter writer(page_table_path(file.name()), is_page_table, "a page table");
  writer.write(bytes);
  writer.replace();
}

}  // namespace millrace
