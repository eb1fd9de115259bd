// SPDX-License-Identifier: Apache-2.0
#include "dataset/record_notes.h"

#include <new>

namespace millrace {

void RecordNotes::allow(std::size_t bytes) {
  std::size_t allowed = limit_.load(std::memory_order_relaxed);
  while (allowed < bytes &&
         !limit_.compare_exchange_weak(allowed, bytes, std::memory_order_relaxed))
    continue;
}

void RecordNotes::read(std::uint64_t record, std::vector<std::byte>& note) const {
  note.clear();
  const Shard& shard = shards_[record % shard_count];
  const MutexLock lock(shard.mutex);
  if (const auto found = shard.notes.find(record); found != shard.notes.end()) note = found->second;
}

void RecordNotes::keep(std::uint64_t record, std::span<const std::byte> note) {
  Shard& shard = shards_[record % shard_count];
  const MutexLock lock(shard.mutex);
  const auto found = shard.notes.find(record);
  const std::size_t before = found == shard.notes.end() ? 0 : found->second.size() + overhead_bytes;
  const std::size_t after = note.size() + overhead_bytes;
  if (after > before && !take(after - before)) return;
  try {
    std::vector<std::byte> kept(note.begin(), note.end());
    shard.notes[record] = std::move(kept);
    if (after < before) bytes_.fetch_sub(before - after, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    // Out of memory: the previous hint stays.
    if (after > before) bytes_.fetch_sub(after - before, std::memory_order_relaxed);
  }
}

/// Reserves `bytes` more. Returns false if that would exceed the limit.
bool RecordNotes::take(std::size_t bytes) {
  std::size_t taken = bytes_.load(std::memory_order_relaxed);
  do {
    const std::size_t limit = limit_.load(std::memory_order_relaxed);
    if (taken > limit || bytes > limit - taken) return false;
  } while (!bytes_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

}  // namespace millrace
