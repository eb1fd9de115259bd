// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cache/cache_budget.h"

namespace millrace {

/// Cache of records in a form that transforms process faster than the stored one. Like those of
/// `SampleCache`, entries are never evicted. Each entry is an allocation of its own. The adding
/// thread touches its pages first, so they are on that thread's NUMA node. Thread-safe, without
/// locks.
class RecodedRecords {
 public:
  /// For the records 0 to `records` - 1. The budget counts all memory, including 8 bytes for each
  /// record and `overhead_bytes` for each entry.
  RecodedRecords(std::uint64_t records, std::shared_ptr<CacheBudget> budget);
  ~RecodedRecords();
  RecodedRecords(const RecodedRecords&) = delete;
  RecodedRecords& operator=(const RecodedRecords&) = delete;

  static constexpr std::size_t overhead_bytes = 64;

  /// Raises the budget's limit to `bytes`, and allocates the table if there is room for it. If the
  /// limit has grown since the last call, forms that did not fit are wanted again.
  void raise_limit(std::size_t bytes);
  /// Whether there was room for the table.
  bool has_table() const { return table_.load(std::memory_order_acquire) != nullptr; }
  std::size_t limit() const { return budget_->limit(); }
  /// Bytes that this cache holds of the budget.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// Bytes that other caches hold of the budget.
  std::size_t other_bytes() const { return budget_->bytes() - bytes(); }

  /// Returns a record's form, valid as long as the cache lives. Empty if the cache does not have
  /// it.
  std::span<const std::byte> find(std::uint64_t record) const;
  /// Whether the form of a record with `stored_bytes` stored bytes should be made: the record was
  /// not tried yet, and the budget may have room for its form.
  bool wants(std::uint64_t record, std::size_t stored_bytes) const;
  /// Adds a copy of a record's form. An empty `form` notes that the record has none. Does nothing
  /// if an entry exists or the budget has no room.
  void keep(std::uint64_t record, std::span<const std::byte> form);

 private:
  /// The bytes of an entry follow it in memory.
  struct Entry {
    std::size_t bytes;
  };
  static constexpr Entry none{0};
  static constexpr Entry no_room{0};

  /// Clears the marks `no_room`, so that these records are tried again.
  void retry_refused();

  const std::uint64_t records_;
  const std::shared_ptr<CacheBudget> budget_;
  /// A pointer for each record: null before the first try, `none` if the record has no form,
  /// `no_room` if its form has over 1 MiB and did not fit under the present limit. If a smaller
  /// form does not fit, its pointer stays null and `full_` is set. A thread that reads a pointer
  /// also sees the bytes that it points to.
  std::atomic<std::atomic<const Entry*>*> table_{nullptr};
  // These two order no other memory.
  std::atomic<std::size_t> bytes_{0};
  /// Whether no further forms are wanted until the limit grows.
  std::atomic<bool> full_{false};
  /// Whether some records may be marked `no_room`. `raise_limit` and `keep` both exchange it, with
  /// acquire and release: the later of the two sees what the earlier one has set, the new limit or
  /// the mark.
  std::atomic<bool> some_refused_{false};
  /// The limit after the last call of `raise_limit`. It orders no other memory.
  std::atomic<std::size_t> allowed_{0};
};

}  // namespace millrace
