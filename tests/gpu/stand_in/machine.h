// SPDX-License-Identifier: Apache-2.0
//
// The inside of the stand-in: queues that threads serve, points in them, and what the runtime's
// functions share.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// A queue and the thread that serves it. The thread goes on to the queue's end when the stream is
/// destroyed, as a GPU does.
class Queue {
 public:
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
  /// Waits for what it was given so far.
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

namespace millrace::testing::stand_in {

/// What a stream was given while it was captured. Once something was done that a capture does not
/// bear, all of it is lost.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id begun_by;
  bool invalid = false;
  std::vector<std::function<void()>> work;
};

}  // namespace millrace::testing::stand_in

// What the handles point to.
struct CUstream_st {
  int device;
  std::shared_ptr<millrace::testing::stand_in::Queue> queue;
  /// Null while it is not captured.
  std::shared_ptr<millrace::testing::stand_in::Capture> capture{};
};
struct CUevent_st {
  int device;
  bool timed;
  std::shared_ptr<millrace::testing::stand_in::Point> point;
  /// Where it was recorded in a capture, which then is not yet a point of a stream.
  std::weak_ptr<millrace::testing::stand_in::Capture> capture{};
};
struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};

namespace millrace::testing::stand_in {

/// All that the stand-in knows. Its members are looked at under the mutex.
struct Machine {
  Machine() = default;
  /// Lets all streams end.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::mutex mutex;
  int devices = 1;
  std::chrono::nanoseconds copy_delay{100'000};
  double clock_factor = 1;
  struct Plan {
    std::uint64_t nth = 0;
    cudaError_t error = cudaSuccess;
    bool for_good = false;
    std::chrono::nanoseconds stall{0};
  };
  std::map<std::string, std::vector<Plan>> plans;
  std::map<std::string, std::uint64_t> calls;
  std::set<int> devices_used;
  std::uint64_t unlocked_copies = 0;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  /// Also those of streams that were destroyed: what they were given is done all the same.
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::thread> threads;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> graph_executions;
  std::map<void*, std::size_t> device_memory;
  std::map<void*, std::size_t> locked_memory;
};

Machine& machine();

/// The device that the calling thread's calls are about.
int& current_device();

/// Counts a call; what a test planned for it is its result.
cudaError_t enter(const char* function);

/// How the calling thread's calls bear on captures: cudaThreadExchangeStreamCaptureMode.
cudaStreamCaptureMode& capture_mode();

/// As `enter`, for a call that captures do not bear: while there is one that concerns the calling
/// thread, the call fails and the capture is lost.
cudaError_t enter_outside_captures(const char* function);

/// How late copies and conversions are.
std::chrono::nanoseconds copy_delay();

/// The stream does `work` when it has come so far; one that is captured keeps it for the graph.
cudaError_t give(cudaStream_t stream, std::function<void()> work);
/// The same, with the machine's mutex held.
cudaError_t give_locked(cudaStream_t stream, std::function<void()> work);

}  // namespace millrace::testing::stand_in
