// SPDX-License-Identifier: Apache-2.0
//
// For programs linked with counting_malloc.cpp, which has a malloc of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace millrace::testing {

/// What counts as an allocation of a picture's size, in bytes.
inline constexpr std::size_t picture_bytes = 32 * 1024;

/// Whether allocations are counted: not under a sanitizer, which has a malloc of its own already,
/// nor beside another C library.
bool counts_allocations();

/// Allocations of `picture_bytes` or more in this process so far.
std::uint64_t large_allocations();

/// While it lives, the calling thread gets no memory, if allocations are counted; or none of so
/// many bytes and more at once.
class NoMemory {
 public:
  explicit NoMemory(std::size_t from_bytes = 0);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace millrace::testing

/// Skips the running test, saying so, where allocations cannot be counted.
#define MILLRACE_NEEDS_COUNTING_MALLOC()                                                          \
  do {                                                                                            \
    if (!::millrace::testing::counts_allocations())                                               \
      GTEST_SKIP() << "needs a malloc of its own, which a sanitizer has already or which this C " \
                      "library does not allow";                                                   \
  } while (false)
