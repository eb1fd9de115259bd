// SPDX-License-Identifier: Apache-2.0
//
// For programs that are linked with counting_malloc.cpp, which replaces malloc.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace millrace::testing {

/// Minimal bytes of a large allocation: about the size of a picture.
inline constexpr std::size_t picture_bytes = 32 * 1024;

/// Whether allocations are counted. They are not under a sanitizer, which replaces malloc itself,
/// or with a C library other than glibc.
bool counts_allocations();

/// Number of allocations of `picture_bytes` or more in this process so far.
std::uint64_t large_allocations();

/// Bytes that the calling thread has allocated, less those that it has freed. 0 if allocations are
/// not counted.
std::int64_t held_bytes();

/// Makes the calling thread's allocations fail while it lives, if allocations are counted: all of
/// them, or those of at least a given size.
class NoMemory {
 public:
  explicit NoMemory(std::size_t from_bytes = 0);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace millrace::testing

/// Skips the running test with a message if allocations cannot be counted.
#define MILLRACE_NEEDS_COUNTING_MALLOC()                                                          \
  do {                                                                                            \
    if (!::millrace::testing::counts_allocations())                                               \
      GTEST_SKIP() << "needs a malloc of its own, which a sanitizer has already or which this C " \
                      "library does not allow";                                                   \
  } while (false)
