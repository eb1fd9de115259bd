// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::testing {

/// How this program's system calls fail, as they do on other file systems. This program defines
/// open, read, pread, write, pwrite, fsync, fdatasync, ftruncate, flock and mmap, which the linker
/// prefers to those of the C library.
struct FailingCalls {
  /// Whether some of the calls fail as if a signal interrupted them (EINTR).
  bool interrupted = false;
  /// The error of flock(2); 0 = success.
  int flock_error = 0;
  /// The errors of mmap(2) for shared and for private maps of files; 0 = success.
  int shared_map_error = 0;
  int private_map_error = 0;
};

/// Makes calls fail during its lifetime. Only one instance at a time.
class FailingCallsScope {
 public:
  explicit FailingCallsScope(const FailingCalls& failing);
  ~FailingCallsScope();
  FailingCallsScope(const FailingCallsScope&) = delete;
  FailingCallsScope& operator=(const FailingCallsScope&) = delete;

  /// How many calls have failed.
  int failed() const;
};

}  // namespace millrace::testing
