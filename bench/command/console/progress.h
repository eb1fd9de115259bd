// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace millrace::cli {

/// Progress of a task over many files.
struct ProgressState {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// "230 of 500 (46%), 371 images/s, 41.2 MB/s, 0:12 left"
std::string progress_text(const ProgressState& state);
/// The same text after a bar, at most `columns` wide.
std::string progress_bar(const ProgressState& state, int columns);

/// Shows progress on a stream: on a terminal as one line that is redrawn, else as a new line every
/// few seconds. Not thread-safe.
class Progress {
 public:
  Progress(std::FILE* stream, std::string verb, std::uint64_t total);
  /// Ends the line on a terminal.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts one finished file. Redraws only if the last redraw is long enough ago.
  void advance(std::uint64_t bytes);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  void show(Clock::time_point now);

  std::FILE* stream_;
  std::string verb_;
  bool terminal_;
  ProgressState state_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool line_open_ = false;
};

}  // namespace millrace::cli
