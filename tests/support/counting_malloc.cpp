// SPDX-License-Identifier: Apache-2.0
#include "support/counting_malloc.h"

#include <malloc.h>

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
thread_local std::int64_t held = 0;

#if defined(MILLRACE_COUNTS_MALLOC)
/// Counts memory that was allocated for `bytes` bytes, and returns it.
void* counted(void* memory, std::size_t bytes) {
  if (bytes >= millrace::testing::picture_bytes) ++large;
  if (memory != nullptr) held += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}
void count_out(void* memory) {
  if (memory != nullptr) held -= static_cast<std::int64_t>(malloc_usable_size(memory));
}
#endif

}  // namespace

#if defined(MILLRACE_COUNTS_MALLOC)
// glibc allows programs to replace malloc, and provides its own under other names. Source: the
// glibc manual, "Replacing malloc".
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);

void* malloc(std::size_t bytes) {
  if (bytes >= refused_from) return nullptr;
  return counted(__libc_malloc(bytes), bytes);
}
void* calloc(std::size_t members, std::size_t bytes) {
  return counted(__libc_calloc(members, bytes), members * bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count_out(memory);
  void* const moved = __libc_realloc(memory, bytes);
  if (moved == nullptr && bytes > 0) counted(memory, 0);  // it stays allocated
  return counted(moved, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return counted(__libc_memalign(alignment, bytes), bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return counted(__libc_memalign(alignment, bytes), bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = counted(__libc_memalign(alignment, bytes), bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  count_out(memory);
  __libc_free(memory);
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

std::int64_t held_bytes() { return held; }

NoMemory::NoMemory(std::size_t from_bytes) { refused_from = from_bytes; }
NoMemory::~NoMemory() { refused_from = SIZE_MAX; }

}  // namespace millrace::testing
