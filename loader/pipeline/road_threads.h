// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/crew.h"
#include "pipeline/outlet.h"
#include "pipeline/planner.h"
#include "pipeline/prefetcher.h"
#include "pipeline/road/road.h"

namespace millrace {

/// A thread that moves slots along the road. It owns its body, so that, let go, it keeps what it
/// uses until it ends. For one thread at a time.
class RoadThread {
 public:
  /// Runs `body`, which must not throw, on a thread of that name (15 bytes at most). Throws
  /// `std::system_error` if no thread can be started.
  template <typename Body>
  explicit RoadThread(Body body, std::string name = "millrace") {
    std::promise<void> ending;
    ended_ = ending.get_future().share();
    thread_ = std::thread(
        [body = std::move(body), name = std::move(name), ending = std::move(ending)]() mutable {
          pthread_setname_np(pthread_self(), name.c_str());
          body.run();
          ending.set_value();
        });
  }
  /// Lets it go if `end` was not called.
  ~RoadThread() {
    if (thread_.joinable()) thread_.detach();
  }
  RoadThread(const RoadThread&) = delete;
  RoadThread& operator=(const RoadThread&) = delete;

  /// Ready when the body has run.
  const std::shared_future<void>& ended() const { return ended_; }
  /// Joins it, or lets it go if it has not ended by `deadline`: then false. May be called again.
  bool end(std::chrono::steady_clock::time_point deadline) {
    const bool ended = ended_.wait_until(deadline) == std::future_status::ready;
    if (thread_.joinable()) ended ? thread_.join() : thread_.detach();
    return ended;
  }

 private:
  std::shared_future<void> ended_;
  std::thread thread_;
};

/// Passes made micro-batches on to the outlet, in plan order.
struct Feeder {
  std::shared_ptr<Device> device;
  std::shared_ptr<Road> road;
  std::shared_ptr<Outlet> outlet;

  /// The thread's life: until the road is closed.
  void run() noexcept;
};

/// Tells the dataset of batches to come.
struct PrefetchBody {
  std::shared_ptr<Road> road;
  std::shared_ptr<Prefetcher> prefetcher;

  void run() noexcept { prefetcher->run(*road); }
};

/// Plans batches for free host slots, and frees those that nothing reads any more.
struct Reaper {
  std::shared_ptr<Device> device;
  std::shared_ptr<Road> road;
  std::shared_ptr<Outlet> outlet;
  std::shared_ptr<Planner> planner;
  std::shared_ptr<Crew> crew;
  std::shared_ptr<Prefetcher> prefetcher;
  /// The feeder's end: what it has begun is waited for.
  std::shared_future<void> feeder_ended;
  std::vector<HostSlot*> leaving{};

  /// The thread's life: until the road is closed and nothing uses the slots any more.
  void run() noexcept;

 private:
  void plan(HostSlot& host);
  void free_left();
  void drain() noexcept;
};

}  // namespace millrace
