// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace millrace::cli {

/// Catches SIGINT and SIGTERM during its lifetime. The first one only sets a flag, so that a
/// command can leave its files complete; the second one ends the process. At most one may exist.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Thread-safe.
  bool requested() const;
  /// The exit code that shells expect after the signal: 130 or 143.
  int exit_code() const;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace millrace::cli
