// SPDX-License-Identifier: Apache-2.0
//
// Two items of a pool add to one plain integer without synchronisation. The thread sanitizer must
// detect this through the pool and oneTBB.

#include <millrace/detail/worker_pool.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

namespace {

class RacingJob final : public millrace::Job {
 public:
  std::size_t items() const override { return 2; }

  void run(std::size_t item, unsigned) override {
    // Relaxed, so that the items meet (on two workers) without ordering what they do then. One
    // waits for the other, because the sanitizer can miss accesses at exactly the same time.
    met_.fetch_add(1, std::memory_order_relaxed);
    while (met_.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
    while (added_.load(std::memory_order_relaxed) < item) std::this_thread::yield();
    ++planted_;
    added_.fetch_add(1, std::memory_order_relaxed);
  }

  bool met() const { return met_.load(std::memory_order_relaxed) == 2; }
  int planted() const { return planted_; }

 private:
  std::atomic<std::size_t> met_{0};
  std::atomic<std::size_t> added_{0};
  int planted_ = 0;
};

}  // namespace

int main() {
  millrace::WorkerPool pool(0, 2, {});
  const auto job = std::make_shared<RacingJob>();
  pool.submit(job.get(), job);
  while (!job->met()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!pool.cancel(job.get(), std::chrono::seconds(10))) return 1;
  std::cout << "counted " << job->planted() << " and no race was reported\n";
  return 0;
}
