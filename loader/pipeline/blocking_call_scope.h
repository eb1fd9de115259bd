// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// Scope in which the calling thread is on the batch path. It records the thread's first blocking
/// call (`note_blocking_call`). Scopes nest: a call is recorded by the innermost scope alone. Must
/// be destroyed on the thread that constructed it.
class BlockingCallScope {
 public:
  /// Records nothing if `forbids_blocking` is false.
  explicit BlockingCallScope(bool forbids_blocking) noexcept;
  ~BlockingCallScope();
  BlockingCallScope(const BlockingCallScope&) = delete;
  BlockingCallScope& operator=(const BlockingCallScope&) = delete;

  /// Throws `Error` (`device`, with `stage`) if a blocking call was recorded. The error names it.
  void check(const char* stage) const;

 private:
  friend void note_blocking_call(const char* call) noexcept;
  BlockingCallScope* outer_ = nullptr;
  bool forbids_blocking_;
  const char* call_ = nullptr;
};

}  // namespace millrace
