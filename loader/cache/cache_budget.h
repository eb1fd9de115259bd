// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace millrace {

/// A memory limit that several caches share, and the bytes that they hold. Thread-safe.
class CacheBudget {
 public:
  /// Raises the limit to `bytes`. A lower value than the present limit has no effect.
  void raise_limit(std::size_t bytes) {
    std::size_t allowed = limit();
    while (allowed < bytes &&
           !limit_.compare_exchange_weak(allowed, bytes, std::memory_order_relaxed))
      continue;
  }
  std::size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  /// Bytes that are taken.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::size_t free_bytes() const {
    const std::size_t taken = bytes();
    const std::size_t most = limit();
    return taken < most ? most - taken : 0;
  }

  /// Takes `bytes`. Returns false if that would exceed the limit.
  bool take(std::size_t bytes) {
    std::size_t taken = this->bytes();
    do {
      const std::size_t most = limit();
      if (taken > most || bytes > most - taken) return false;
    } while (!bytes_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  // Plain counters: relaxed memory order is enough.
  std::atomic<std::size_t> limit_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace millrace
