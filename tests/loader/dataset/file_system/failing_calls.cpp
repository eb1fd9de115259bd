// SPDX-License-Identifier: Apache-2.0
#include "loader/dataset/file_system/failing_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdint>

namespace millrace::testing {
namespace {

std::atomic<bool> interrupted;
std::atomic<int> flock_error, shared_map_error, private_map_error, failed_calls;

/// A call that fails with `error`, unless that is 0.
bool fails(int error) {
  if (error == 0) return false;
  ++failed_calls;
  errno = error;
  return true;
}

/// Fails half of the calls in an irregular pattern, so that a caller that retries a group of calls
/// succeeds too.
bool is_interrupted() {
  static std::atomic<std::uint64_t> calls;
  if (!interrupted.load()) return false;
  const std::uint64_t mixed = (calls.fetch_add(1) + 1) * 0x9E3779B97F4A7C15ULL;
  return fails(((mixed ^ (mixed >> 29U)) * 0xBF58476D1CE4E5B9ULL) >> 63U != 0 ? EINTR : 0);
}

template <typename... Arguments>
long call(long number, Arguments... arguments) {
  return is_interrupted() ? -1 : syscall(number, arguments...);
}

}  // namespace

FailingCallsScope::FailingCallsScope(const FailingCalls& failing) {
  failed_calls = 0;
  interrupted = failing.interrupted;
  flock_error = failing.flock_error;
  shared_map_error = failing.shared_map_error;
  private_map_error = failing.private_map_error;
}

FailingCallsScope::~FailingCallsScope() {
  interrupted = false;
  flock_error = shared_map_error = private_map_error = 0;
}

int FailingCallsScope::failed() const { return failed_calls; }

}  // namespace millrace::testing

using millrace::testing::call;
using millrace::testing::fails;

// The C library has some functions under two names.
extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, unsigned) : 0;
  va_end(list);
  return static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));

ssize_t read(int file, void* to, size_t bytes) { return call(SYS_read, file, to, bytes); }
ssize_t write(int file, const void* from, size_t bytes) {
  return call(SYS_write, file, from, bytes);
}
ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  return call(SYS_pread64, file, to, bytes, offset);
}
ssize_t pread64(int, void*, size_t, off_t) __attribute__((alias("pread")));
ssize_t pwrite(int file, const void* from, size_t bytes, off_t offset) {
  return call(SYS_pwrite64, file, from, bytes, offset);
}
ssize_t pwrite64(int, const void*, size_t, off_t) __attribute__((alias("pwrite")));
int fsync(int file) { return static_cast<int>(call(SYS_fsync, file)); }
int fdatasync(int file) { return static_cast<int>(call(SYS_fdatasync, file)); }
int ftruncate(int file, off_t bytes) noexcept {
  return static_cast<int>(call(SYS_ftruncate, file, bytes));
}
int flock(int file, int operation) noexcept {
  if (fails(millrace::testing::flock_error)) return -1;
  return static_cast<int>(call(SYS_flock, file, operation));
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  const bool shared = (flags & MAP_SHARED) != 0;
  if (file >= 0 &&
      fails(shared ? millrace::testing::shared_map_error : millrace::testing::private_map_error))
    return MAP_FAILED;
  return std::bit_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
void* mmap64(void*, size_t, int, int, int, off_t) noexcept __attribute__((alias("mmap")));

}  // extern "C"
