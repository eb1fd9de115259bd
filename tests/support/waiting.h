// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

namespace millrace::testing {

/// Maximal time that a test waits for an event that must happen: far more than a busy machine
/// needs.
inline constexpr std::chrono::seconds patience{30};

/// Blocks threads until the test opens it.
class Gate {
 public:
  /// Opens the gate, and waits for the threads inside.
  ~Gate() {
    open();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return left_ == arrived_; });
  }

  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Returns when the gate is open; returns false if it stayed closed for all of `patience`.
  bool pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    const bool opened = changed_.wait_for(lock, patience, [this] { return open_; });
    ++left_;
    changed_.notify_all();
    return opened;
  }
  bool is_open() const {
    std::lock_guard lock(mutex_);
    return open_;
  }
  /// Number of threads that have arrived at the gate so far.
  std::size_t arrived() const {
    std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::size_t arrived_ = 0;
  std::size_t left_ = 0;
};

/// Opens a gate at the end of a scope, so that a failed assertion leaves nothing stuck.
class OpensAtEnd {
 public:
  explicit OpensAtEnd(Gate& gate) : gate_(gate) {}
  ~OpensAtEnd() { gate_.open(); }
  OpensAtEnd(const OpensAtEnd&) = delete;
  OpensAtEnd& operator=(const OpensAtEnd&) = delete;

 private:
  Gate& gate_;
};

/// Blocks threads until `parties` of them have arrived.
class Meeting {
 public:
  explicit Meeting(std::size_t parties) : parties_(parties) {}
  /// Returns false if the others did not arrive.
  bool meet() {
    std::unique_lock lock(mutex_);
    if (++arrived_ >= parties_) changed_.notify_all();
    return changed_.wait_for(lock, patience, [this] { return arrived_ >= parties_; });
  }

 private:
  const std::size_t parties_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
};

/// Waits until a condition is true; returns false if it does not become true.
template <typename Condition>
bool eventually(Condition condition, std::chrono::nanoseconds timeout = patience) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Calls `run` up to three times until `is_right` accepts the result, and returns the last result.
/// A busy machine may spoil one run, but a fault spoils each.
template <typename Run, typename IsRight>
auto best_of_three(Run run, IsRight is_right) {
  auto result = run();
  for (int again = 0; again < 2 && !is_right(result); ++again) result = run();
  return result;
}

/// Calls `run` with the factors 1, 3, 9 and 27 until `is_right` accepts the result, and returns the
/// last result. `run` multiplies its durations by the factor: beside long ones, a busy machine's
/// delays are small.
template <typename Run, typename IsRight>
auto best_of_longer(Run run, IsRight is_right) {
  auto result = run(1);
  for (int factor = 3; factor <= 27 && !is_right(result); factor *= 3) result = run(factor);
  return result;
}

/// Returns whether a thread of this process sleeps. `thread` is its `gettid()`.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end, 3) == ") S";
}

/// Measures the time since its construction.
class Stopwatch {
 public:
  std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - start_; }
  double seconds() const { return std::chrono::duration<double>(elapsed()).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace millrace::testing
