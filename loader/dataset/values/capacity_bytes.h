// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace millrace {

/// Bytes of memory that vectors and strings have allocated for their elements.
template <typename... Vectors>
std::size_t capacity_bytes(const Vectors&... vectors) {
  return (... + (vectors.capacity() * sizeof(typename Vectors::value_type)));
}

}  // namespace millrace
