// SPDX-License-Identifier: Apache-2.0
#include "cache/recoded_records.h"

#include <cstring>
#include <new>
#include <utility>

namespace millrace {
namespace {

/// If an entry of up to this size does not fit, the cache counts as full. Making entries that do
/// not fit would cost more time than the rest of the budget saves.
constexpr std::size_t common_bytes = std::size_t{1} << 20;

}  // namespace

RecodedRecords::RecodedRecords(std::uint64_t records, std::shared_ptr<CacheBudget> budget)
    : records_(records), budget_(std::move(budget)) {}

RecodedRecords::~RecodedRecords() {
  std::atomic<const Entry*>* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return;
  for (std::uint64_t record = 0; record < records_; ++record)
    if (const Entry* const entry = table[record].load(std::memory_order_acquire);
        entry != nullptr && entry != &none && entry != &no_room)
      ::operator delete(const_cast<Entry*>(entry));
  delete[] table;
  budget_->give_back(bytes());
}

void RecodedRecords::raise_limit(std::size_t bytes) {
  budget_->raise_limit(bytes);
  full_.store(false, std::memory_order_relaxed);
  const std::size_t limit = budget_->limit();
  if (allowed_.exchange(limit, std::memory_order_relaxed) < limit) retry_refused();
  constexpr std::size_t entry_bytes = sizeof(std::atomic<const Entry*>);
  if (has_table() || records_ > budget_->limit() / entry_bytes) return;
  const std::size_t needed = static_cast<std::size_t>(records_) * entry_bytes + overhead_bytes;
  if (needed >= budget_->free_bytes() || !budget_->take(needed)) return;
  auto* const made =
      new (std::nothrow) std::atomic<const Entry*>[static_cast<std::size_t>(records_)] {};
  std::atomic<const Entry*>* before = nullptr;
  if (made == nullptr || !table_.compare_exchange_strong(before, made, std::memory_order_release,
                                                         std::memory_order_relaxed)) {
    delete[] made;
    budget_->give_back(needed);
    return;
  }
  bytes_.fetch_add(needed, std::memory_order_relaxed);
}

void RecodedRecords::retry_refused() {
  std::atomic<const Entry*>* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr || !some_refused_.exchange(false, std::memory_order_acq_rel)) return;
  for (std::uint64_t record = 0; record < records_; ++record) {
    const Entry* refused = &no_room;
    table[record].compare_exchange_strong(refused, nullptr, std::memory_order_relaxed);
  }
}

std::span<const std::byte> RecodedRecords::find(std::uint64_t record) const {
  const std::atomic<const Entry*>* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr || record >= records_) return {};
  const Entry* const entry = table[record].load(std::memory_order_acquire);
  if (entry == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(entry + 1), entry->bytes};
}

bool RecodedRecords::wants(std::uint64_t record, std::size_t stored_bytes) const {
  const std::atomic<const Entry*>* const table = table_.load(std::memory_order_acquire);
  return table != nullptr && record < records_ && !full_.load(std::memory_order_relaxed) &&
         stored_bytes + overhead_bytes <= budget_->free_bytes() &&
         table[record].load(std::memory_order_relaxed) == nullptr;
}

void RecodedRecords::keep(std::uint64_t record, std::span<const std::byte> form) {
  std::atomic<const Entry*>* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr || record >= records_) return;
  const Entry* before = nullptr;
  if (form.empty()) {
    table[record].compare_exchange_strong(before, &none, std::memory_order_relaxed);
    return;
  }
  if (table[record].load(std::memory_order_relaxed) != nullptr) return;
  const std::size_t needed = form.size() + overhead_bytes;
  const std::size_t limit = budget_->limit();
  if (!budget_->take(needed)) {
    // If a larger entry does not fit, smaller ones are still added.
    if (form.size() <= common_bytes) {
      full_.store(true, std::memory_order_relaxed);
    } else {
      table[record].compare_exchange_strong(before, &no_room, std::memory_order_relaxed);
      // If `raise_limit` raised the limit meanwhile, it did not see this refused record.
      some_refused_.exchange(true, std::memory_order_acq_rel);
      if (budget_->limit() > limit) retry_refused();
    }
    return;
  }
  void* const memory = ::operator new(sizeof(Entry) + form.size(), std::nothrow);
  if (memory != nullptr) {
    auto* const entry = new (memory) Entry{form.size()};
    std::memcpy(entry + 1, form.data(), form.size());
    if (table[record].compare_exchange_strong(before, entry, std::memory_order_release,
                                              std::memory_order_relaxed)) {
      bytes_.fetch_add(needed, std::memory_order_relaxed);
      return;
    }
    ::operator delete(memory);  // another thread has added the record first
  }
  budget_->give_back(needed);
}

}  // namespace millrace
