// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cache/cache_budget.h"

namespace millrace {

/// Record hints: a few bytes for each record, which transforms store to make its sample faster the
/// next time. The memory is limited. When it is full, new hints are not added and old ones are not
/// evicted: a run that reads every record once an epoch gains nothing from evicting. Thread-safe.
class RecordHints {
 public:
  /// Raises the memory limit to `bytes`, which include the overhead of the lookup table. A lower
  /// value than the present limit has no effect.
  void raise_limit(std::size_t bytes) { budget_.raise_limit(bytes); }
  std::size_t limit() const { return budget_.limit(); }
  /// Bytes of memory in use.
  std::size_t bytes() const { return budget_.bytes(); }

  /// Copies a record's hint into `hint`. `hint` becomes empty if the record has no hint.
  void read(std::uint64_t record, std::vector<std::byte>& hint) const;
  /// Stores a record's hint in place of its previous one. Does nothing if the memory is full.
  void keep(std::uint64_t record, std::span<const std::byte> hint);

 private:
  /// Estimated overhead for each hint: a node of the map and two allocations.
  static constexpr std::size_t overhead_bytes = 96;
  static constexpr std::size_t shard_count = 64;

  /// One part of the map, on cache lines of its own.
  struct alignas(64) Shard {
    mutable Mutex mutex;
    std::unordered_map<std::uint64_t, std::vector<std::byte>> hints MILLRACE_GUARDED_BY(mutex);
  };

  std::array<Shard, shard_count> shards_;
  CacheBudget budget_;
};

}  // namespace millrace
