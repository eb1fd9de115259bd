// SPDX-License-Identifier: Apache-2.0
#include "device/loan.h"

#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "device/cuda_call.h"

namespace millrace {
namespace {

/// Time that the process's end waits for deferred frees.
constexpr std::chrono::milliseconds patience_at_exit{1000};

/// The queues of deferred frees of all devices. They must be closed before the CUDA runtime, which
/// was used first, is destroyed with the process: its functions must not be called later.
struct Ways {
  ~Ways() {
    if (getpid() != process) return;
    for (const auto& [device, known] : all)
      if (const auto returns = known.lock()) returns->close(patience_at_exit);
  }
  const pid_t process = getpid();
  std::mutex mutex;
  std::map<int, std::weak_ptr<Returns>> all;
};

}  // namespace

std::shared_ptr<Returns> Returns::of(int device) {
  static Ways ways;
  if (getpid() != ways.process)
    throw Error(ErrorCode::device,
                "a CUDA device was used in a child of fork() whose parent had used one, which CUDA "
                "does not support; start the child as a new program, or fork before the first "
                "CudaDevice");
  const std::lock_guard lock(ways.mutex);
  std::weak_ptr<Returns>& known = ways.all[device];
  if (auto returns = known.lock(); returns != nullptr && returns->join()) return returns;
  auto returns = std::make_shared<Returns>();
  try {
    std::thread([returns, device] { returns->serve(device); }).detach();
  } catch (const std::system_error& error) {
    throw Error(
        ErrorCode::device,
        std::string("no thread for a CUDA device's memory can be started: ") + error.what());
  }
  known = returns;
  return returns;
}

bool Returns::join() {
  const std::lock_guard lock(mutex_);
  if (!ended_) ++users_;
  return !ended_;
}

void Returns::leave() noexcept {
  const std::lock_guard lock(mutex_);
  --users_;
  changed_.notify_all();
}

void Returns::put(Loan* loan) noexcept {
  const std::lock_guard lock(mutex_);
  (first_ == nullptr ? first_ : last_->next) = loan;
  last_ = loan;
  changed_.notify_all();
}

void Returns::wait(std::chrono::milliseconds timeout) noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return first_ == nullptr && !returning_; });
}

void Returns::close(std::chrono::milliseconds timeout) noexcept {
  wait(timeout);
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Returns::serve(int device) noexcept {
  bool bound = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return first_ != nullptr || users_ == 0 || closed_; });
    if (first_ == nullptr || closed_) break;
    Loan* const loan = std::exchange(first_, first_->next);
    returning_ = true;
    lock.unlock();
    if (loan->what != nullptr) {
      bound = bound || blocking_call("cudaSetDevice", cudaSetDevice, device) == cudaSuccess;
      blocking_call(loan->call, loan->function, loan->what);
    }
    delete loan;
    lock.lock();
    returning_ = false;
    --users_;
    changed_.notify_all();
  }
  ended_ = true;
}

void EndLoan::operator()(Loan* loan) const noexcept {
  if (!loan->returns->here()) return;
  if (loan->what != nullptr) note_blocking_call(loan->call);
  const std::shared_ptr<Returns> returns = std::move(loan->returns);  // the loan may end now
  returns->put(loan);
}

}  // namespace millrace
