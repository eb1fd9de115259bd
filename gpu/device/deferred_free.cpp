// SPDX-License-Identifier: Apache-2.0
#include "device/deferred_free.h"

#include <atomic>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "device/cuda_call.h"

namespace millrace {
namespace {

/// Time that the process's end waits for deferred frees.
constexpr std::chrono::milliseconds patience_at_exit{1000};

/// The process that first used a device; 0 before its first use. Relaxed order suffices, since no
/// other data depends on it.
std::atomic<pid_t> user_process{0};

/// The queues of deferred frees of all devices. The destructor closes them at the process's end,
/// while the CUDA runtime still exists: the runtime was used first, so it is destroyed later.
struct DeallocationQueues {
  DeallocationQueues() { user_process.store(process, std::memory_order_relaxed); }
  ~DeallocationQueues() {
    if (getpid() != process) return;
    for (const auto& [device, known] : all)
      if (const auto queue = known.lock()) queue->close(patience_at_exit);
  }
  const pid_t process = getpid();
  std::mutex mutex;
  std::map<int, std::weak_ptr<DeallocationQueue>> all;
};

}  // namespace

std::string why_not_after_fork() {
  const pid_t user = user_process.load(std::memory_order_relaxed);
  if (user == 0 || user == getpid()) return {};
  return "a CUDA device was used in a child of fork() whose parent had used one, which CUDA does "
         "not support; start the child as a new program, or fork before the first CudaDevice";
}

void check_not_forked() {
  if (const std::string why = why_not_after_fork(); !why.empty())
    throw Error(ErrorCode::device, why);
}

std::shared_ptr<DeallocationQueue> DeallocationQueue::of(int device) {
  check_not_forked();
  static DeallocationQueues queues;
  const std::lock_guard lock(queues.mutex);
  std::weak_ptr<DeallocationQueue>& known = queues.all[device];
  if (auto queue = known.lock(); queue != nullptr && queue->add_user()) return queue;
  auto queue = std::make_shared<DeallocationQueue>();
  try {
    std::thread([queue, device] { queue->serve(device); }).detach();
  } catch (const std::system_error& error) {
    throw Error(
        ErrorCode::device,
        std::string("no thread for a CUDA device's memory can be started: ") + error.what());
  }
  known = queue;
  return queue;
}

bool DeallocationQueue::add_user() {
  const std::lock_guard lock(mutex_);
  if (!ended_) ++users_;
  return !ended_;
}

void DeallocationQueue::remove_user() noexcept {
  const std::lock_guard lock(mutex_);
  --users_;
  changed_.notify_all();
}

void DeallocationQueue::put(DeferredFree* deferred) noexcept {
  const std::lock_guard lock(mutex_);
  (first_ == nullptr ? first_ : last_->next) = deferred;
  last_ = deferred;
  changed_.notify_all();
}

void DeallocationQueue::wait(std::chrono::milliseconds timeout) noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return first_ == nullptr && !freeing_; });
}

void DeallocationQueue::close(std::chrono::milliseconds timeout) noexcept {
  wait(timeout);
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void DeallocationQueue::serve(int device) noexcept {
  bool bound = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return first_ != nullptr || users_ == 0 || closed_; });
    if (first_ == nullptr || closed_) break;
    DeferredFree* const deferred = std::exchange(first_, first_->next);
    freeing_ = true;
    lock.unlock();
    if (deferred->object != nullptr) {
      bound = bound || blocking_call("cudaSetDevice", cudaSetDevice, device) == cudaSuccess;
      blocking_call(deferred->call, deferred->function, deferred->object);
    }
    delete deferred;
    lock.lock();
    freeing_ = false;
    --users_;
    changed_.notify_all();
  }
  ended_ = true;
}

void EnqueueFree::operator()(DeferredFree* deferred) const noexcept {
  if (!deferred->queue->is_owner_process()) return;
  if (deferred->object != nullptr) note_blocking_call(deferred->call);
  const std::shared_ptr<DeallocationQueue> queue =
      std::move(deferred->queue);  // the thread may delete `deferred` now
  queue->put(deferred);
}

}  // namespace millrace
