// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::testing {

/// How system calls of this program fail, as on other file systems. This program's own open, read,
/// pread, write, pwrite, fsync, fdatasync, ftruncate, flock and mmap stand before those of the C
/// library.
struct FailingCalls {
  /// Whether a part of the calls fails as if a signal interrupted them (EINTR).
  bool interrupted = false;
  /// The error of flock(2); 0 = it works.
  int flock_error = 0;
  /// The errors of mmap(2) for shared and for private maps of files; 0 = they work.
  int shared_map_error = 0;
  int private_map_error = 0;
};

/// Makes calls fail while it lives. Only one at a time.
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
