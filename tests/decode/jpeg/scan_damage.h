// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "decode/jpeg/damage.h"
#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Returns the offsets of the markers after a JPEG's first scan, without restart markers.
inline std::vector<std::size_t> later_markers(const Bytes& encoded) {
  std::vector<std::size_t> markers;
  for (std::size_t at = first_scan(encoded); at + 1 < encoded.size(); ++at) {
    const int second = std::to_integer<int>(encoded[at + 1]);
    const bool is_restart = (second & ~7) == 0xD0;
    if (encoded[at] == std::byte{0xFF} && second != 0 && !is_restart) markers.push_back(at++);
  }
  return markers;
}

/// Damages a progressive JPEG as `damaged` does, or a header between its scans, or their order.
inline Bytes damaged_scans(Bytes encoded, Random& random) {
  const std::vector<std::size_t> markers = later_markers(encoded);
  const auto kind = random() % 5;
  if (kind < 2 || markers.size() < 4) return damaged(std::move(encoded), random);
  const auto offset = [](std::size_t at) { return static_cast<std::ptrdiff_t>(at); };
  if (kind == 2) {
    // Two neighbouring segments, with the data after them.
    const std::size_t n = random() % (markers.size() - 3);
    std::rotate(encoded.begin() + offset(markers[n]), encoded.begin() + offset(markers[n + 1]),
                encoded.begin() + offset(markers[n + 2]));
    return encoded;
  }
  if (kind == 3) {
    const std::size_t n = random() % (markers.size() - 1);
    const Bytes part(encoded.begin() + offset(markers[n]),
                     encoded.begin() + offset(markers[n + 1]));
    if (random() % 2 == 0)
      encoded.insert(encoded.begin() + offset(markers[n]), part.begin(), part.end());
    else
      encoded.erase(encoded.begin() + offset(markers[n]), encoded.begin() + offset(markers[n + 1]));
    return encoded;
  }
  // A table's codes and symbols, or a scan's parameters. Symbols make runs of up to 32,767 blocks.
  const std::size_t at = markers[random() % markers.size()] + 2 + random() % 40;
  if (at < encoded.size()) encoded[at] = static_cast<std::byte>(random());
  return encoded;
}

}  // namespace millrace::testing
