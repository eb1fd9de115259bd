// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace millrace {

/// Memory for the pixels of one image after the other. It only grows, up to
/// `DecodeBudget::small_bytes`. A larger piece is for one image and is dropped at its end.
class PixelScratch {
 public:
  /// Returns memory of at least `bytes` bytes of unspecified value. It is valid until the next
  /// call.
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
