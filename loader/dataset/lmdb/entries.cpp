// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/entries.h"

#include <algorithm>

#include "dataset/lmdb/keys.h"

namespace millrace {

void Entries::leave_out_metadata() {
  // With these flags the keys are integers, or keys with a common prefix are not adjacent.
  if ((tree_.flags & (lmdb::integer_keys | lmdb::reversed_keys)) != 0) return;
  EntryCursor cursor(*this);
  std::vector<std::uint64_t> found;
  for (const std::string_view begin : metadata_key_beginnings) {
    // Metadata keys are few. If more keys than this have the same beginning, the others belong to
    // records.
    constexpr std::uint64_t most = 64;
    const std::uint64_t first = cursor.first_not_before(begin);
    for (std::uint64_t n = first; n < std::min(size_, first + most); ++n) {
      const std::string_view key = cursor.key(n);
      if (!key.starts_with(begin)) break;
      if (is_metadata_key(key)) found.push_back(n);
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  size_ -= found.size();
  left_out_ = std::move(found);
}

void Entries::keep(std::uint64_t first, std::uint64_t count) {
  first_ = first;
  size_ = count;
  left_out_.clear();
}

std::uint64_t Entries::number(std::uint64_t n) const {
  n += first_;
  for (const std::uint64_t without : left_out_) {
    if (without > n) break;
    ++n;
  }
  return n;
}

unsigned EntryCursor::go_to(std::uint64_t n) {
  const std::uint64_t number = entries_.number(n);
  if (!place_.has(number)) place_ = entries_.table().find(number);
  return static_cast<unsigned>(number - place_.first);
}

std::string_view EntryCursor::key(std::uint64_t n) {
  const unsigned at = go_to(n);
  const auto key =
      cursor_.with([&](const LmdbPages& pages) { return pages.entry_key(place_.leaf, at); });
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

std::span<const std::byte> EntryCursor::value(std::uint64_t n) {
  const unsigned at = go_to(n);
  return cursor_.with([&](const LmdbPages& pages) { return pages.entry_value(place_.leaf, at); });
}

FileRange EntryCursor::locate(std::uint64_t n) {
  const unsigned at = go_to(n);
  return cursor_.with([&](const LmdbPages& pages) { return pages.locate_entry(place_.leaf, at); });
}

std::uint64_t EntryCursor::first_not_before(std::string_view wanted, std::uint64_t begin) {
  const auto is_before = [&](std::uint64_t n) {
    const std::string_view found = key(n);
    return lmdb_key_less(entries_.tree().flags, std::as_bytes(std::span(found)),
                         std::as_bytes(std::span(wanted)));
  };
  // Starts with a galloping search, because the entry is often near.
  std::uint64_t end = begin;
  for (std::uint64_t step = 1; end < entries_.size() && is_before(end); step *= 2) {
    begin = end + 1;
    end += std::min(step, entries_.size() - end);
  }
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (is_before(middle))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

Status EntryCursor::check_intact(std::span<const std::byte> value) const {
  Status kept = cursor_.check_intact(value);
  const LmdbFile& file = entries_.file();
  if (!kept.is_ok() || value.empty() || file.whole()) return kept;
  // In the file's last page, bytes after its end read as zeros without a fault.
  const std::uint64_t offset = cursor_.offset_of(value);
  if (offset + value.size() <= file.length_now()) return kept;
  return Status::bad(file.unreadable(offset, shorter_or_damaged).reason());
}

}  // namespace millrace
