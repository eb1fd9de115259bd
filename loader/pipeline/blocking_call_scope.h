// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// Scope in which the calling thread is on the batch path: records the first blocking call
/// (`note_blocking_call`). Scopes nest; the innermost one records. Must be destroyed on the thread
/// that constructed it.
class BlockingCallScope {
 public:
  /// With `forbids_blocking` false nothing is recorded.
  explicit BlockingCallScope(bool forbids_blocking) noexcept;
  ~BlockingCallScope();
  BlockingCallScope(const BlockingCallScope&) = delete;
  BlockingCallScope& operator=(const BlockingCallScope&) = delete;

  /// Throws `Error` (`device`, with `stage`) with the name of the first blocking call so far, if
  /// any.
  void check(const char* stage) const;

 private:
  friend void note_blocking_call(const char* call) noexcept;
  BlockingCallScope* outer_ = nullptr;
  bool forbids_blocking_;
  const char* call_ = nullptr;
};

}  // namespace millrace
