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

/// Room for the packed samples of a micro-batch in its slot. Each sample is entitled to a share of
/// the room; the bytes that it leaves go to longer samples. All numbers are multiples of
/// `DeviceStage::input_unit`. Workers call it at once; only `clear` needs the room alone.
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
  // They only count. The count of unmade samples orders the samples' bytes.
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> spare_{0};
};

}  // namespace millrace
