// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace millrace::cli {

/// While it lives, the first SIGINT or SIGTERM only sets a flag, so that a command can stop where
/// its files are in order; a second one ends the process. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// From any thread.
  bool requested() const;
  /// What a shell expects of a command that was interrupted: 130 or 143.
  int exit_code() const;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace millrace::cli
