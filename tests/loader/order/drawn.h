// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sampler.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace millrace::testing {

/// The records at `count` positions from `first` on.
inline std::vector<std::uint64_t> drawn(const Sampler& sampler, std::uint64_t first,
                                        std::uint64_t count) {
  std::vector<std::uint64_t> records(count);
  std::iota(records.begin(), records.end(), first);
  sampler.draw(records, records);
  return records;
}

inline std::vector<std::uint64_t> epoch_of(const Sampler& sampler, std::uint64_t epoch) {
  return drawn(sampler, epoch * sampler.epoch_size(), sampler.epoch_size());
}

/// Whether these are 0 .. size - 1 in some order.
inline bool is_permutation(std::vector<std::uint64_t> records) {
  std::ranges::sort(records);
  for (std::uint64_t n = 0; n < records.size(); ++n)
    if (records[n] != n) return false;
  return true;
}

}  // namespace millrace::testing
