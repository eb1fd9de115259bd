// SPDX-License-Identifier: Apache-2.0
#include "pipeline/blocking_call_scope.h"

#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <string>

namespace millrace {
namespace {

/// The calling thread's innermost scope; null outside all scopes.
thread_local BlockingCallScope* innermost = nullptr;

}  // namespace

BlockingCallScope::BlockingCallScope(bool forbids_blocking) noexcept
    : outer_(innermost), forbids_blocking_(forbids_blocking) {
  innermost = this;
}

BlockingCallScope::~BlockingCallScope() { innermost = outer_; }

void BlockingCallScope::check(const char* stage) const {
  if (call_ == nullptr) return;
  throw Error(ErrorCode::device,
              std::string(call_) + " was called on the batch path (" + stage +
                  ") after warm-up, which forbid_blocking_calls forbids: it allocates or waits for "
                  "the device",
              stage);
}

void note_blocking_call(const char* call) noexcept {
  if (innermost != nullptr && innermost->forbids_blocking_ && innermost->call_ == nullptr)
    innermost->call_ = call;
}

}  // namespace millrace
