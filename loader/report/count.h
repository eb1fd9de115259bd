// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

/// A count that one thread adds to while others may look. It orders nothing. No other thread adds,
/// so none needs the locked instruction of `std::atomic::fetch_add`, which costs as much as 20
/// others.
class Count {
 public:
  void add(std::uint64_t more) { value_.store(value() + more, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace millrace
