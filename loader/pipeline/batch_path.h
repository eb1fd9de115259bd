// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// While it lives, the calling thread is on the batch path: blocking calls it makes
/// (`note_blocking_call`) are kept. Scopes nest; the innermost is told. Ends on the thread that
/// made it.
class BatchPath {
 public:
  /// `watched` false: nothing is kept.
  explicit BatchPath(bool watched) noexcept;
  ~BatchPath();
  BatchPath(const BatchPath&) = delete;
  BatchPath& operator=(const BatchPath&) = delete;

  /// Throws `Error` (`device`, with `stage`) that names the first blocking call so far, where there
  /// was one.
  void check(const char* stage) const;

 private:
  friend void note_blocking_call(const char* call) noexcept;
  BatchPath* outer_ = nullptr;
  bool watched_;
  const char* call_ = nullptr;
};

}  // namespace millrace
