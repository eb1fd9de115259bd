// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "c/calls.h"

namespace millrace::c {

/// Callbacks of the caller's, and the end of what they are given as `user`.
template <typename Callbacks>
struct CallbackOwner {
  Callbacks calls{};

  CallbackOwner() = default;
  CallbackOwner(const CallbackOwner&) = delete;
  CallbackOwner& operator=(const CallbackOwner&) = delete;
  ~CallbackOwner() {
    if (taken_ && getpid() == process_ && calls.free_user != nullptr) calls.free_user(calls.user);
  }

  /// From here on `user` is freed with this object: it was made into what the caller asked for.
  void take() { taken_ = true; }

 private:
  bool taken_ = false;
  /// The child of a fork() frees nothing: what `user` stands for is its parent's.
  const pid_t process_ = getpid();
};

/// What one thread's callbacks are given: made by a callback, or `user` where there is none.
class CallbackState {
 public:
  using Make = millrace_status (*)(void* user, void** state, millrace_error* error);
  using Free = void (*)(void* state);

  /// `where` comes before the message of an error.
  CallbackState(Make make, Free free, void* user, const std::string& where) : state_(user) {
    if (make == nullptr) return;
    millrace_error error{};
    if (const millrace_status status = make(user, &state_, &error); status != MILLRACE_OK) {
      const Error failed = callback_error(where, status, error);
      if (failed.code() != ErrorCode::bad_record) throw failed;
      throw Error(ErrorCode::internal, failed.what());  // there is no record yet
    }
    free_ = free;
  }
  CallbackState(const CallbackState&) = delete;
  CallbackState& operator=(const CallbackState&) = delete;
  ~CallbackState() {
    if (free_ != nullptr && getpid() == process_) free_(state_);
  }

  void* get() const { return state_; }

 private:
  void* state_;
  Free free_ = nullptr;
  const pid_t process_ = getpid();
};

}  // namespace millrace::c
