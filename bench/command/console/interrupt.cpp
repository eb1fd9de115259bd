// SPDX-License-Identifier: Apache-2.0
#include "command/console/interrupt.h"

#include <atomic>

namespace millrace::cli {
namespace {

// Number of the first signal; 0 = none. A signal handler can use only global variables. Relaxed
// order suffices, since no other data depends on it.
std::atomic<int> signalled{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) { signalled.store(signal, std::memory_order_relaxed); }

}  // namespace

Interrupt::Interrupt() {
  signalled.store(0, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  // Keeps SIG_IGN if the parent process set it (nohup, a background job of a shell).
  if (old_int_.sa_handler == SIG_IGN) sigaction(SIGINT, &old_int_, nullptr);
  if (old_term_.sa_handler == SIG_IGN) sigaction(SIGTERM, &old_term_, nullptr);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool Interrupt::requested() const { return signalled.load(std::memory_order_relaxed) != 0; }

int Interrupt::exit_code() const { return 128 + signalled.load(std::memory_order_relaxed); }

}  // namespace millrace::cli
