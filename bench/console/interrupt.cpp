// SPDX-License-Identifier: Apache-2.0
#include "console/interrupt.h"

#include <atomic>

namespace millrace::cli {
namespace {

// A signal handler has nothing but the process to leave word in. Orders nothing else.
std::atomic<bool> signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) { signalled.store(true, std::memory_order_relaxed); }

}  // namespace

Interrupt::Interrupt() {
  signalled.store(false, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  // Who started us to ignore it (nohup, a shell's background job) goes on being obeyed.
  if (old_int_.sa_handler == SIG_IGN) sigaction(SIGINT, &old_int_, nullptr);
  if (old_term_.sa_handler == SIG_IGN) sigaction(SIGTERM, &old_term_, nullptr);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool Interrupt::requested() const { return signalled.load(std::memory_order_relaxed); }

}  // namespace millrace::cli
