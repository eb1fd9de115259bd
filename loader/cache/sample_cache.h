// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "cache/cache_budget.h"

namespace millrace {

/// Cache of intermediate results from which transforms make samples. It stores the same number of
/// bytes for each record. The memory is limited and is allocated as it is needed. When the cache is
/// full, new entries are not added and old ones are not evicted: each epoch reads every record
/// once, so the entry that was used last is the one that is needed last. Thread-safe; `find` takes
/// no lock.
class SampleCache {
 public:
  /// Caches `sample_bytes` (at least 1) for each of the records 0 to `records` - 1. Other caches
  /// may share the budget.
  SampleCache(std::uint64_t records, std::size_t sample_bytes,
              std::shared_ptr<CacheBudget> budget = std::make_shared<CacheBudget>());
  ~SampleCache() { budget_->give_back(bytes()); }
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  /// Raises the budget's limit to `bytes`, which include 8 bytes of the lookup table per record. A
  /// lower value than the present limit has no effect.
  void raise_limit(std::size_t bytes);
  std::size_t limit() const { return budget_->limit(); }
  /// Number of samples that fit into this cache's memory and the rest of the budget.
  std::uint64_t samples_that_fit() const;
  /// Bytes that this cache holds of the budget.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// Bytes that other caches hold of the budget.
  std::size_t other_bytes() const { return budget_->bytes() - bytes(); }
  std::size_t sample_bytes() const { return sample_bytes_; }

  /// Returns the cached bytes of a record, valid as long as the cache lives. Empty if the record is
  /// not cached.
  std::span<const std::byte> find(std::uint64_t record) const;
  /// Returns memory to write the bytes of one record to; empty if the cache is full. Pass it to
  /// `keep` or `give_back` afterwards.
  std::span<std::byte> take();
  /// Adds the bytes written to `room`, which `take` returned, as a record's entry. Frees `room` if
  /// another thread has added this record already.
  void keep(std::uint64_t record, std::span<std::byte> room);
  void give_back(std::span<std::byte> room);

 private:
  using Entry = std::atomic<const std::byte*>;

  std::size_t table_bytes() const;
  std::size_t chunk_samples() const;
  /// Allocates memory for more samples. Returns whether there was room for at least one.
  bool grow() MILLRACE_REQUIRES(mutex_);

  const std::uint64_t records_;
  const std::size_t sample_bytes_;
  /// Distance in bytes from one sample to the next.
  const std::size_t stride_;
  const std::shared_ptr<CacheBudget> budget_;

  /// Table with a pointer for each record. It is null until the limit has room for the table and
  /// one sample. A thread that reads a non-null pointer also sees the bytes that it points to.
  std::atomic<Entry*> entries_{nullptr};
  std::atomic<std::size_t> bytes_{0};  // a plain counter, relaxed order

  mutable Mutex mutex_;
  std::unique_ptr<Entry[]> table_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<std::byte[]>> chunks_ MILLRACE_GUARDED_BY(mutex_);
  /// The unused rest of the last chunk.
  std::span<std::byte> fresh_ MILLRACE_GUARDED_BY(mutex_);
  /// Linked free list. Each free piece has at least 64 bytes and begins with the address of the
  /// next.
  std::byte* first_free_ MILLRACE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace millrace
