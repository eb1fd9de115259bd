// SPDX-License-Identifier: Apache-2.0
//
// Implementation of the stand-in's streams: queues that threads serve, and points in them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

namespace millrace::testing::stand_in {

using Clock = std::chrono::steady_clock;

/// A point in a stream's work.
class Point {
 public:
  void pass() {
    std::lock_guard lock(mutex_);
    passed_ = Clock::now();
    changed_.notify_all();
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return passed_.has_value(); });
  }
  std::optional<Clock::time_point> passed() const {
    std::lock_guard lock(mutex_);
    return passed_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Clock::time_point> passed_;
};

/// A queue and its thread. When the stream is destroyed, the thread still serves the queue to its
/// end, as a GPU does.
class Queue {
 public:
  explicit Queue(int on_device) : device(on_device) {}
  const int device;

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty() || closed_; });
      if (work_.empty()) return;
      std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      next();
      next = nullptr;
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }
  /// Waits for all work so far.
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, given = given_] { return done_ >= given; });
  }
  void push(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++given_;
    changed_.notify_all();
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
  bool closed_ = false;
};

}  // namespace millrace::testing::stand_in
