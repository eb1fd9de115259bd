// SPDX-License-Identifier: Apache-2.0
#include "dataset/stored_hints.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/read_full.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> hints_format = {'M', 'R', 'n', 'o', 't', 'e', 's', '1'};

}  // namespace

fs::path stored_hints_path(const fs::path& file) { return resolved(file).string() + ".index"; }

bool is_hints_file(const fs::path& path) { return begins_with(path, hints_format); }

std::vector<std::byte> HintsHeader::packed() const {
  std::vector<std::byte> all(bytes);
  std::memcpy(all.data(), hints_format.data(), 8);
  std::memcpy(all.data() + 8, &records, 8);
  std::memcpy(all.data() + 16, &fingerprint, 8);
  const std::uint64_t checksum = XXH3_64bits(all.data(), 24);
  std::memcpy(all.data() + 24, &checksum, 8);
  return all;
}

std::optional<HintsHeader> HintsHeader::unpack(std::span<const std::byte> packed) {
  HintsHeader header;
  std::uint64_t checksum = 0;
  if (packed.size() < bytes ||
      std::memcmp(packed.data(), hints_format.data(), hints_format.size()) != 0)
    return std::nullopt;
  std::memcpy(&header.records, packed.data() + 8, 8);
  std::memcpy(&header.fingerprint, packed.data() + 16, 8);
  std::memcpy(&checksum, packed.data() + 24, 8);
  if (checksum != XXH3_64bits(packed.data(), 24)) return std::nullopt;
  return header;
}

std::unique_ptr<const StoredHints> StoredHints::open(const fs::path& file,
                                                     const HintsHeader& dataset, bool mapped,
                                                     std::vector<std::string>& warnings) {
  const std::string name = stored_hints_path(file).string();
  const auto refuse = [&](const std::string& why) {
    warnings.push_back(name + " " + why + "; it is not used. `millrace index` makes a new one.");
    return nullptr;
  };
  FileDescriptor opened = FileDescriptor::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!opened) {
    if (errno == ENOENT) return nullptr;
    return refuse("cannot be opened: " + errno_text(errno));
  }
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0) return refuse("cannot be read: " + errno_text(errno));
  auto hints = std::make_unique<StoredHints>();
  hints->bytes_ = static_cast<std::uint64_t>(status.st_size);
  hints->file_ = std::move(opened);
  std::array<std::byte, HintsHeader::bytes> packed{};
  if (!S_ISREG(status.st_mode) || !hints->read_at(0, packed))
    return refuse("is not a file of record hints");
  const std::optional<HintsHeader> header = HintsHeader::unpack(packed);
  if (!header) return refuse("is not a file of record hints, has another format, or is damaged");
  if (header->records != dataset.records || header->fingerprint != dataset.fingerprint)
    return refuse("belongs to another dataset");
  hints->header_ = *header;
  std::uint64_t end = 0;
  if (!hints->read_at(header->end_of_table() - sizeof end,
                      std::as_writable_bytes(std::span(&end, 1))) ||
      end != hints->bytes_)
    return refuse("is damaged or cut short");
  if (!mapped) return hints;
  try {
    // These warnings are dropped: opening the dataset's own file has given the same ones.
    std::vector<std::string> same;
    hints->map_ = SigbusSafeMap::make(hints->file_.get(), static_cast<std::size_t>(hints->bytes_),
                                      name, same);
  } catch (const Error& error) {
    warnings.push_back(std::string(error.what()) + "; it is not used.");
    return nullptr;
  }
  if (hints->map_) hints->file_ = {};
  return hints;
}

std::optional<std::uint64_t> StoredHints::first_misplaced() const {
  std::vector<std::uint64_t> ends(4096);
  std::uint64_t before = header_.end_of_table();
  for (std::uint64_t begin = 0; begin <= header_.records; begin += ends.size()) {
    ends.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(ends.size(), header_.records + 1 - begin)));
    if (!read_at(HintsHeader::bytes + begin * sizeof(std::uint64_t),
                 std::as_writable_bytes(std::span(ends))))
      return begin;
    for (std::size_t n = 0; n < ends.size(); before = ends[n++]) {
      const std::uint64_t number = begin + n;
      const bool is_first_right = number > 0 || ends[n] == before;
      if (!is_first_right || ends[n] < before || ends[n] > bytes_ ||
          ends[n] - before > HintsHeader::max_hint_bytes)
        return number > 0 ? number - 1 : 0;
    }
  }
  return std::nullopt;
}

std::vector<std::string> damaged_hint_tables(const Dataset& dataset) {
  std::vector<std::string> damaged;
  const auto parts = dataset.parts();
  for (const auto& part : parts)
    std::ranges::move(damaged_hint_tables(*part), std::back_inserter(damaged));
  if (!parts.empty() || !dataset.has_stored_hints() || dataset.facts().files.size() != 1)
    return damaged;
  const fs::path& file = dataset.facts().files.front();
  const auto hints = StoredHints::open(
      file, {.records = dataset.size(), .fingerprint = dataset.facts().fingerprint.value_or(0)},
      false, damaged);
  const auto misplaced = hints != nullptr ? hints->first_misplaced() : std::nullopt;
  if (misplaced)
    damaged.push_back(stored_hints_path(file).string() +
                      ": the table has an impossible offset at record " +
                      std::to_string(*misplaced) + "; `millrace index` makes a new file.");
  return damaged;
}

void StoredHints::read(std::uint64_t record, std::vector<std::byte>& hint) const {
  hint.clear();
  std::array<std::uint64_t, 2> range{};
  if (record >= header_.records ||
      !read_at(HintsHeader::bytes + record * sizeof(std::uint64_t),
               std::as_writable_bytes(std::span(range))) ||
      range[0] < header_.end_of_table() || range[1] < range[0] || range[1] > bytes_ ||
      range[1] - range[0] > HintsHeader::max_hint_bytes)
    return;
  hint.resize(static_cast<std::size_t>(range[1] - range[0]));
  if (!read_at(range[0], hint)) hint.clear();
}

/// Returns false unless all of the bytes could be read.
bool StoredHints::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (offset > bytes_ || bytes.size() > bytes_ - offset) return false;
  if (map_ != nullptr) {
    std::ranges::copy(map_->bytes().subspan(static_cast<std::size_t>(offset), bytes.size()),
                      bytes.begin());
    return true;
  }
  return read_full(file_.get(), offset, bytes) == bytes.size();
}

}  // namespace millrace
