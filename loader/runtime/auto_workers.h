// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// Chooses how many workers a pipeline needs: the fewest that keep batches ready. Adds workers at
/// once when the trainer stalls. Without stalls it removes workers step by step, down to the number
/// that the workers' measured time requires. It removes them more slowly each time that a removal
/// caused stalls. For one thread at a time.
class AutoWorkers {
 public:
  /// Measurements of one window of time.
  struct Window {
    double seconds = 0;
    /// Time that the trainer waited for data that was not made.
    double stall_seconds = 0;
    /// Total time that workers spent on samples.
    double busy_seconds = 0;
  };

  /// Begins with all workers, of which there are `most` (>= 1).
  explicit AutoWorkers(unsigned most) : most_(most), workers_(most) {}

  /// Returns the number of workers to use after this window.
  unsigned update(const Window& window);
  unsigned workers() const { return workers_; }

 private:
  unsigned most_;
  unsigned workers_;
  /// Number of successive windows in which fewer workers would do, and the number of such windows
  /// after which workers are removed.
  unsigned calm_ = 0;
  unsigned patience_ = 2;
  bool removed_last_ = false;
};

}  // namespace millrace
