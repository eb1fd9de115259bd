// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device_stage.h>

#include <atomic>
#include <cstddef>

namespace millrace {

/// Returns the bytes that a packed sample takes in its slot.
inline std::size_t packed_bytes(std::size_t bytes) {
  return (bytes + DeviceStage::input_unit - 1) / DeviceStage::input_unit * DeviceStage::input_unit;
}

/// Memory in a slot for the packed samples of one micro-batch: this class does the accounting. Each
/// sample has the right to a fixed number of bytes, its share. Longer samples may take what other
/// samples leave of their shares. All sizes are multiples of `DeviceStage::input_unit`. Several
/// workers may call the methods at once, except `clear`.
class PackedRoom {
 public:
  /// Empties the room.
  void clear() {
    used_.store(0, std::memory_order_relaxed);
    spare_.store(0, std::memory_order_relaxed);
  }
  /// Takes bytes beyond a sample's share. Returns false if other samples have not left so many.
  bool take(std::size_t bytes) {
    std::size_t spare = spare_.load(std::memory_order_relaxed);
    while (spare >= bytes)
      if (spare_.compare_exchange_weak(spare, spare - bytes, std::memory_order_relaxed))
        return true;
    return false;
  }
  /// Leaves bytes to other samples.
  void leave(std::size_t bytes) { spare_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Places a sample behind the others. Returns its offset.
  std::size_t place(std::size_t bytes) { return used_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Bytes of the samples placed so far.
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  // Counters that order no other memory. `HostSlot::unmade` orders the samples' bytes.
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> spare_{0};
};

}  // namespace millrace
