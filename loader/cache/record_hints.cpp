// SPDX-License-Identifier: Apache-2.0
#include "cache/record_hints.h"

#include <new>

namespace millrace {

void RecordHints::allow(std::size_t bytes) {
  std::size_t allowed = limit_.load(std::memory_order_relaxed);
  while (allowed < bytes &&
         !limit_.compare_exchange_weak(allowed, bytes, std::memory_order_relaxed))
    continue;
}

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
  if (after > before && !take(after - before)) return;
  try {
    std::vector<std::byte> kept(hint.begin(), hint.end());
    shard.hints[record] = std::move(kept);
    if (after < before) bytes_.fetch_sub(before - after, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    // Out of memory: the previous hint stays.
    if (after > before) bytes_.fetch_sub(after - before, std::memory_order_relaxed);
  }
}

/// Reserves `bytes` more. Returns false if that would exceed the limit.
bool RecordHints::take(std::size_t bytes) {
  std::size_t taken = bytes_.load(std::memory_order_relaxed);
  do {
    const std::size_t limit = limit_.load(std::memory_order_relaxed);
    if (taken > limit || bytes > limit - taken) return false;
  } while (!bytes_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

}  // namespace millrace
