// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

/// The bytes of the pieces that are borrowed of a `Scratch` at once, in the order of borrowing.
using ScratchSizes = std::vector<std::size_t>;

/// Enlarges `sizes` so that `others` fit, too.
inline void enlarge(ScratchSizes& sizes, const ScratchSizes& others) {
  sizes.resize(std::max(sizes.size(), others.size()));
  for (std::size_t piece = 0; piece < others.size(); ++piece)
    sizes[piece] = std::max(sizes[piece], others[piece]);
}

/// One worker's memory for operations. It only grows. Pieces are returned in the reverse order of
/// borrowing. So an operation that another one runs gets the next piece.
class Scratch {
 public:
  /// Borrowed bytes of unspecified value, aligned for any plain type. The destructor returns them.
  class Borrowed {
   public:
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() { --scratch_.used_; }
    std::span<std::uint8_t> bytes() const { return bytes_; }
    std::uint8_t* data() const { return bytes_.data(); }

   private:
    friend class Scratch;
    Borrowed(Scratch& scratch, std::span<std::uint8_t> bytes) : scratch_(scratch), bytes_(bytes) {}
    Scratch& scratch_;
    std::span<std::uint8_t> bytes_;
  };

  Borrowed borrow(std::size_t bytes) {
    if (used_ == pieces_.size()) pieces_.emplace_back();
    std::vector<std::uint8_t>& piece = pieces_[used_];
    if (piece.size() < bytes) {
      piece.clear();  // nothing in it is worth copying
      piece.shrink_to_fit();
      piece.resize(bytes);
    }
    ++used_;
    return {*this, std::span(piece).first(bytes)};
  }

 private:
  /// Moving a vector does not move its bytes, so borrowed bytes stay where they are.
  std::vector<std::vector<std::uint8_t>> pieces_;
  std::size_t used_ = 0;
};

}  // namespace millrace
