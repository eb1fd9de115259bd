// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "c/calls.h"

namespace millrace::c {

/// The caller's callbacks. The destructor calls their `free_user` once `take` was called.
template <typename Callbacks>
struct CallbackOwner {
  Callbacks calls{};

  CallbackOwner() = default;
  CallbackOwner(const CallbackOwner&) = delete;
  CallbackOwner& operator=(const CallbackOwner&) = delete;
  ~CallbackOwner() {
    if (taken_ && getpid() == process_ && calls.free_user != nullptr) calls.free_user(calls.user);
  }

  /// Takes ownership of `user`: from here on it is freed with this object. Call it when the
  /// caller's handle has been made.
  void take() { taken_ = true; }

 private:
  bool taken_ = false;
  /// Process that made this object. A child of fork() frees nothing, since its parent owns `user`.
  const pid_t process_ = getpid();
};

/// State that is passed to one thread's callbacks: the result of `make`, or `user` if `make` is
/// null.
class CallbackState {
 public:
  using Make = millrace_status (*)(void* user, void** state, millrace_error* error);
  using Free = void (*)(void* state);

  /// `where` is the prefix of error messages.
  CallbackState(Make make, Free free, void* user, const std::string& where) : state_(user) {
    if (make == nullptr) return;
    millrace_error error{};
    if (const millrace_status status = make(user, &state_, &error); status != MILLRACE_OK) {
      const Error failed = callback_error(where, status, error);
      if (failed.code() != ErrorCode::bad_record) throw failed;
      throw Error(ErrorCode::internal, failed.what());  // no record exists yet
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
