// SPDX-License-Identifier: Apache-2.0
#include "cache/sample_cache.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace millrace {
namespace {

/// Approximate size of one allocation (chunk).
constexpr std::size_t chunk_bytes = std::size_t{8} << 20;
/// Overhead of an allocation: its header and the rest of its last page.
constexpr std::size_t chunk_overhead = 4096 + 64;
constexpr std::size_t cache_line = 64;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

}  // namespace

SampleCache::SampleCache(std::uint64_t records, std::size_t sample_bytes,
                         std::shared_ptr<CacheBudget> budget)
    : records_(records),
      sample_bytes_(sample_bytes),
      stride_(rounded_up(sample_bytes)),
      budget_(std::move(budget)) {}

std::size_t SampleCache::table_bytes() const {
  return static_cast<std::size_t>(records_) * sizeof(Entry) + chunk_overhead;
}

/// Returns the number of samples in a full allocation. It is at most the number of records, so a
/// small dataset leaves the rest of the budget to other caches.
std::size_t SampleCache::chunk_samples() const {
  return std::clamp<std::size_t>(chunk_bytes / stride_, 1,
                                 std::max<std::size_t>(static_cast<std::size_t>(records_), 1));
}

void SampleCache::raise_limit(std::size_t bytes) {
  const MutexLock lock(mutex_);
  budget_->raise_limit(bytes);
  if (table_ != nullptr || records_ > limit() / sizeof(Entry) ||
      budget_->free_bytes() < table_bytes() + chunk_overhead + stride_ ||
      !budget_->take(table_bytes()))
    return;
  try {
    table_ = std::make_unique<Entry[]>(static_cast<std::size_t>(records_));
  } catch (const std::bad_alloc&) {
    budget_->give_back(table_bytes());
    return;  // out of memory
  }
  bytes_.fetch_add(table_bytes(), std::memory_order_relaxed);
  entries_.store(table_.get(), std::memory_order_release);
}

std::uint64_t SampleCache::samples_that_fit() const {
  const MutexLock lock(mutex_);
  if (table_ == nullptr) return 0;
  const std::size_t in_chunk = chunk_samples();
  const std::size_t chunk = in_chunk * stride_ + chunk_overhead;
  const std::size_t left = bytes() - table_bytes() + budget_->free_bytes();
  const std::size_t rest = left % chunk;
  return left / chunk * in_chunk + (rest > chunk_overhead ? (rest - chunk_overhead) / stride_ : 0);
}

std::span<const std::byte> SampleCache::find(std::uint64_t record) const {
  const Entry* entries = entries_.load(std::memory_order_acquire);
  if (entries == nullptr || record >= records_) return {};
  const std::byte* kept = entries[record].load(std::memory_order_acquire);
  if (kept == nullptr) return {};
  return {kept, sample_bytes_};
}

std::span<std::byte> SampleCache::take() {
  const MutexLock lock(mutex_);
  if (first_free_ != nullptr) {
    std::byte* const room = first_free_;
    std::memcpy(&first_free_, room, sizeof first_free_);
    return {room, sample_bytes_};
  }
  if (fresh_.empty() && !grow()) return {};
  std::byte* const room = fresh_.data();
  fresh_ = fresh_.subspan(stride_);
  return {room, sample_bytes_};
}

bool SampleCache::grow() {
  if (table_ == nullptr) return false;
  std::size_t samples = 0;
  std::size_t taken = 0;
  do {  // repeats if another cache has used up the budget meanwhile
    const std::size_t left = budget_->free_bytes();
    if (left < chunk_overhead + stride_) return false;
    samples = std::min(chunk_samples(), (left - chunk_overhead) / stride_);
    taken = samples * stride_ + chunk_overhead;
  } while (!budget_->take(taken));
  try {
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(samples * stride_));
  } catch (const std::bad_alloc&) {
    budget_->give_back(taken);
    return false;
  }
  fresh_ = {chunks_.back().get(), samples * stride_};
  bytes_.fetch_add(taken, std::memory_order_relaxed);
  return true;
}

void SampleCache::keep(std::uint64_t record, std::span<std::byte> room) {
  Entry* const entries = entries_.load(std::memory_order_acquire);
  const std::byte* none = nullptr;
  if (record >= records_ ||
      !entries[record].compare_exchange_strong(none, room.data(), std::memory_order_release,
                                               std::memory_order_relaxed))
    give_back(room);
}

void SampleCache::give_back(std::span<std::byte> room) {
  const MutexLock lock(mutex_);
  std::memcpy(room.data(), &first_free_, sizeof first_free_);
  first_free_ = room.data();
}

}  // namespace millrace
