// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "report/single_writer_counter.h"

namespace millrace {

/// Counts by label. Only one thread may call `add`; other threads may call `add_to` meanwhile.
/// Labels beyond the first `most` are counted as "other".
class LabelCounts {
 public:
  static constexpr std::size_t most = 16;

  /// `what` is the label. It must outlive this object, and must be the same pointer in each call.
  void add(const char* what, std::uint64_t amount = 1) {
    std::size_t place = 0;
    while (place < most) {
      const char* there = texts_[place].load(std::memory_order_relaxed);
      if (there == what) break;
      if (there == nullptr) {
        texts_[place].store(what, std::memory_order_release);  // publishes the text, too
        break;
      }
      ++place;
    }
    counts_[place].add(amount);
  }

  void add_to(std::map<std::string, std::uint64_t>& sums) const {
    for (std::size_t place = 0; place <= most; ++place) {
      const std::uint64_t count = counts_[place].value();
      const char* text = place < most ? texts_[place].load(std::memory_order_acquire) : other;
      if (text != nullptr && count > 0) sums[text] += count;
    }
  }

 private:
  static constexpr const char* other = "other";
  std::array<std::atomic<const char*>, most> texts_{};
  std::array<SingleWriterCounter, most + 1> counts_{};
};

}  // namespace millrace
