// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_path.h"

#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <string>

namespace millrace {
namespace {

/// The calling thread's innermost scope; null outside all scopes.
thread_local BatchPath* innermost = nullptr;

}  // namespace

BatchPath::BatchPath(bool watched) noexcept : outer_(innermost), watched_(watched) {
  innermost = this;
}

BatchPath::~BatchPath() { innermost = outer_; }

void BatchPath::check(const char* stage) const {
  if (call_ == nullptr) return;
  throw Error(ErrorCode::device,
              std::string(call_) + " was called on the batch path (" + stage +
                  ") after warm-up, which forbid_blocking_calls forbids: it allocates or waits for "
                  "the device",
              stage);
}

void note_blocking_call(const char* call) noexcept {
  if (innermost != nullptr && innermost->watched_ && innermost->call_ == nullptr)
    innermost->call_ = call;
}

}  // namespace millrace
