// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace millrace {

/// Memory for pixels that is reused from image to image. Up to `DecodeBudget::small_bytes` it only
/// grows. A larger size serves one image: its decoder then calls `drop_if_large`.
class PixelScratch {
 public:
  /// Returns at least `bytes` bytes of memory with unspecified content, valid until the next call.
  std::uint8_t* reserve(std::size_t bytes) {
    if (bytes_ < bytes) {
      drop();  // avoids a copy of the old content
      const std::size_t room = bytes > DecodeBudget::small_bytes ? bytes : std::bit_ceil(bytes);
      memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(room);
      bytes_ = room;
    }
    return memory_.get();
  }
  std::size_t bytes() const { return bytes_; }
  void drop_if_large() {
    if (bytes_ > DecodeBudget::small_bytes) drop();
  }

 private:
  void drop() {
    memory_.reset();
    bytes_ = 0;
  }

  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace millrace
