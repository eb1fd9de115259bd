// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace millrace {

/// What transforms note of a dataset's records as they make samples of them: some bytes for each,
/// in memory of a stated size. What has no room is not kept, and nothing is dropped for it: in a
/// run that takes every record once an epoch, no note is worth more than another. All functions may
/// be called from any thread at once.
class RecordNotes {
 public:
  /// Lets the notes take `bytes`, with what it takes to find them, if they may not take more yet.
  void allow(std::size_t bytes);
  /// The memory that they take.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  /// Copies a record's note; none is empty.
  void read(std::uint64_t record, std::vector<std::byte>& note) const;
  /// Keeps a record's note in place of the one before, if there is room.
  void keep(std::uint64_t record, std::span<const std::byte> note);

 private:
  /// About what a map's node and two pieces of allocated memory take beside the note.
  static constexpr std::size_t overhead_bytes = 96;
  static constexpr std::size_t shard_count = 64;

  /// On cache lines of its own.
  struct alignas(64) Shard {
    mutable Mutex mutex;
    std::unordered_map<std::uint64_t, std::vector<std::byte>> notes MILLRACE_GUARDED_BY(mutex);
  };

  bool take(std::size_t bytes);

  std::array<Shard, shard_count> shards_;
  // Counts, which order nothing.
  std::atomic<std::size_t> limit_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace millrace
