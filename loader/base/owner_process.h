// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace millrace {

/// The process that made an object. A child of fork() inherits the object, but not its threads.
/// Waiting for these threads in the child would never end.
class OwnerProcess {
 public:
  bool is_owner() const { return getpid() == pid_; }

 private:
  pid_t pid_ = getpid();
};

/// Keeps `value` until the process ends.
template <typename Value>
void leak(Value value) {
  static_cast<void>(new Value(std::move(value)));
}

}  // namespace millrace
