// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// Chooses how many workers a pipeline needs: the fewest that keep batches ready. More at once when
/// the trainer stalls; fewer step by step while it does not, as far as the workers' measured time
/// allows, and the more slowly the more often that went wrong. One thread at a time may use it.
class AutoWorkers {
 public:
  /// What happened in a window of time.
  struct Window {
    double seconds = 0;
    /// How long the trainer waited for data that was not made.
    double stall_seconds = 0;
    /// How long workers spent on samples, all together.
    double busy_seconds = 0;
  };

  /// Begins with all of `most` workers (>= 1).
  explicit AutoWorkers(unsigned most) : most_(most), workers_(most) {}

  /// Returns how many there shall be after this window.
  unsigned update(const Window& window);
  unsigned workers() const { return workers_; }

 private:
  unsigned most_;
  unsigned workers_;
  /// How many windows without stalls there were since the last change, and how many it takes to let
  /// workers go.
  unsigned calm_ = 0;
  unsigned patience_ = 2;
  bool let_go_last_ = false;
};

}  // namespace millrace
