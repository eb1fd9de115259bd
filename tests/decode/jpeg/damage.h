// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <cstddef>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Damages entropy-coded data, and sometimes the headers before it.
inline Bytes damaged(Bytes encoded, Random& random) {
  const std::size_t scan = first_scan(encoded);
  const auto anywhere = [&](std::size_t begin) {
    return begin + random() % (encoded.size() - begin);
  };
  switch (random() % 6) {
    case 0:
      encoded.resize(anywhere(scan));
      break;
    case 1:
      encoded.erase(encoded.begin() + static_cast<std::ptrdiff_t>(anywhere(scan)));
      break;
    case 2:
      encoded.insert(encoded.begin() + static_cast<std::ptrdiff_t>(anywhere(scan)),
                     static_cast<std::byte>(random()));
      break;
    case 3:
      encoded[anywhere(2)] = static_cast<std::byte>(random());
      break;
    case 4:
      encoded[anywhere(scan)] = std::byte{0xFF};
      break;
    default:
      encoded[anywhere(scan)] ^= static_cast<std::byte>(1U << random() % 8);
  }
  return encoded;
}

}  // namespace millrace::testing
