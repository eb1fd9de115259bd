// SPDX-License-Identifier: Apache-2.0
#include "support/counting_malloc.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "support/sanitizers.h"

#if !defined(MILLRACE_TSAN) && !defined(MILLRACE_ASAN) && defined(__GLIBC__)
#define MILLRACE_COUNTS_MALLOC 1
#endif

namespace {

std::atomic<std::uint64_t> large{0};
thread_local std::size_t refused_from = SIZE_MAX;

[[maybe_unused]] void count(std::size_t bytes) {
  if (bytes >= millrace::testing::picture_bytes) ++large;
}

}  // namespace

#if defined(MILLRACE_COUNTS_MALLOC)
// glibc allows programs to replace malloc, and provides its own under other names. Source: the
// glibc manual, "Replacing malloc".
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  if (bytes >= refused_from) return nullptr;
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t members, std::size_t bytes) {
  count(members * bytes);
  return __libc_calloc(members, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count(bytes);
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

namespace millrace::testing {

bool counts_allocations() {
#if defined(MILLRACE_COUNTS_MALLOC)
  return true;
#else
  return false;
#endif
}

std::uint64_t large_allocations() { return large; }

NoMemory::NoMemory(std::size_t from_bytes) { refused_from = from_bytes; }
NoMemory::~NoMemory() { refused_from = SIZE_MAX; }

}  // namespace millrace::testing
