// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// Scope in which the calling thread is on the batch path: records the first blocking call
/// (`note_blocking_call`). Scopes nest; the innermost one records. Must be destroyed on the thread
/// that constructed it.
class BatchPath {
 public:
  /// With `watched` false nothing is recorded.
  explicit BatchPath(bool watched) noexcept;
  ~BatchPath();
  BatchPath(const BatchPath&) = delete;
  BatchPath& operator=(const BatchPath&) = delete;

  /// Throws `Error` (`device`, with `stage`) with the name of the first blocking call so far, if
  /// any.
  void check(const char* stage) const;

 private:
  friend void note_blocking_call(const char* call) noexcept;
  BatchPath* outer_ = nullptr;
  bool watched_;
  const char* call_ = nullptr;
};

}  // namespace millrace
