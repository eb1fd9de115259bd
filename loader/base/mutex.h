// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>

// Clang's thread-safety analysis (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html); other
// compilers ignore it.
#if defined(__clang__)
#define MILLRACE_ANNOTATION(x) __attribute__((x))
#else
#define MILLRACE_ANNOTATION(x)
#endif
#define MILLRACE_CAPABILITY MILLRACE_ANNOTATION(capability("mutex"))
#define MILLRACE_SCOPED_CAPABILITY MILLRACE_ANNOTATION(scoped_lockable)
#define MILLRACE_GUARDED_BY(mutex) MILLRACE_ANNOTATION(guarded_by(mutex))
#define MILLRACE_REQUIRES(mutex) MILLRACE_ANNOTATION(requires_capability(mutex))
#define MILLRACE_ACQUIRE(...) MILLRACE_ANNOTATION(acquire_capability(__VA_ARGS__))
#define MILLRACE_RELEASE(...) MILLRACE_ANNOTATION(release_capability(__VA_ARGS__))

namespace millrace {

/// A std::mutex with annotations for the thread-safety analysis.
class MILLRACE_CAPABILITY Mutex {
 public:
  void lock() MILLRACE_ACQUIRE() { mutex_.lock(); }
  void unlock() MILLRACE_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds the mutex that `mutex` returns during each fork() from now on, so that the child finds it
/// unlocked. (The threads that may hold a mutex at that time do not exist in the child.) Call it
/// once per mutex. Never call it for two mutexes if a thread may lock one of them while it holds
/// the other. Throws `std::bad_alloc`.
template <Mutex& (*mutex)()>
void keep_free_in_children() {
  const auto lock = []() MILLRACE_ANNOTATION(no_thread_safety_analysis) { mutex().lock(); };
  const auto unlock = []() MILLRACE_ANNOTATION(no_thread_safety_analysis) { mutex().unlock(); };
  if (pthread_atfork(lock, unlock, unlock) != 0) throw std::bad_alloc();
}

class MILLRACE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MILLRACE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() MILLRACE_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for `Mutex`. Waits may return early: always call them in a loop that checks
/// the condition.
class Condition {
 public:
  using Clock = std::chrono::steady_clock;

  void wait(Mutex& mutex) MILLRACE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// Returns false when `deadline` has passed. `Clock::time_point::max()` means no deadline.
  bool wait_until(Mutex& mutex, Clock::time_point deadline) MILLRACE_REQUIRES(mutex) {
    if (deadline == Clock::time_point::max()) {
      wait(mutex);
      return true;
    }
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

/// Notifies the added conditions in its destructor. Declare it before a `MutexLock`: it then
/// notifies after the mutex is unlocked, so that the woken thread does not block on the mutex at
/// once.
class NotifyAfterUnlock {
 public:
  NotifyAfterUnlock() = default;
  ~NotifyAfterUnlock() {
    for (std::size_t n = 0; n < count_; ++n) conditions_[n]->notify_all();
  }
  NotifyAfterUnlock(const NotifyAfterUnlock&) = delete;
  NotifyAfterUnlock& operator=(const NotifyAfterUnlock&) = delete;

  void add(Condition& condition) { conditions_[count_++] = &condition; }

 private:
  std::array<Condition*, 4> conditions_{};
  std::size_t count_ = 0;
};

/// Returns now plus `timeout`, without overflow: a timeout that is too long to add means no
/// deadline.
template <typename Rep, typename Period>
Condition::Clock::time_point deadline_after(std::chrono::duration<Rep, Period> timeout) {
  using Time = Condition::Clock::time_point;
  const Time now = Condition::Clock::now();
  const auto longest = std::chrono::floor<decltype(timeout)>(Time::max() - now);
  return timeout >= longest ? Time::max() : now + timeout;
}

}  // namespace millrace
