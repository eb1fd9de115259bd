// SPDX-License-Identifier: Apache-2.0
#include "cache/record_hints.h"

#include <new>

namespace millrace {

void RecordHints::read(std::uint64_t record, std::vector<std::byte>& hint) const {
  hint.clear();
  const Shard& shard = shards_[record % shard_count];
  const MutexLock lock(shard.mutex);
  if (const auto found = shard.hints.find(record); found != shard.hints.end()) hint = found->second;
}

void RecordHints::keep(std::uint64_t record, std::span<const std::byte> hint) {
  Shard& shard = shards_[record % shard_count];
  const MutexLock lock(shard.mutex);
  const auto found = shard.hints.find(record);
  const std::size_t before = found == shard.hints.end() ? 0 : found->second.size() + overhead_bytes;
  const std::size_t after = hint.size() + overhead_bytes;
  if (after > before && !budget_.take(after - before)) return;
  try {
    std::vector<std::byte> kept(hint.begin(), hint.end());
    shard.hints[record] = std::move(kept);
    if (after < before) budget_.give_back(before - after);
  } catch (const std::bad_alloc&) {
    // Memory is exhausted: the previous hint stays.
    if (after > before) budget_.give_back(after - before);
  }
}

}  // namespace millrace
