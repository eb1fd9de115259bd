// SPDX-License-Identifier: Apache-2.0
//
// Tests of which workers wake when there is work.
#include <gmock/gmock.h>
#include <millrace/detail/worker_pool.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_job.h"
#include "support/helping_pools.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::best_of_longer;
using testing::eventually;
using testing::Gate;
using testing::job;
using testing::Meeting;
using testing::OpensAtEnd;
using testing::owner;
using testing::patience;
using testing::Pools;

/// Returns how often each worker of the process has gone to sleep so far.
std::map<std::string, std::uint64_t> sleeps() {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "status");
    std::string line;
    bool worker = false;
    while (std::getline(file, line)) {
      if (line.starts_with("Name:")) worker = line.find("millrace-w") != std::string::npos;
      if (worker && line.starts_with("voluntary_ctxt_switches:"))
        counts[task.path().filename()] = std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return counts;
}

/// Returns how many workers wake while `act` runs and for a while after it. Tries again with longer
/// times if they are more than two: on a busy machine a worker may go to sleep late.
template <typename Act>
std::size_t woken_by(Act act) {
  const auto wakes = [&act](int factor) {
    auto before = sleeps();
    EXPECT_TRUE(eventually([&] {  // all workers without work sleep
      std::this_thread::sleep_for(50ms * factor);
      return before == std::exchange(before, sleeps());
    }));
    act();
    std::this_thread::sleep_for(50ms);
    std::size_t woken = 0;
    for (const auto& [thread, count] : sleeps()) woken += before.at(thread) != count ? 1 : 0;
    return woken;
  };
  return best_of_longer(wakes, [](std::size_t woken) { return woken <= 2; });
}

void run_one(WorkerPool& pool) {
  std::atomic<bool> ran{false};
  pool.submit(&owner, job(1, [&](std::size_t, unsigned) { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  EXPECT_TRUE(pool.cancel(&owner, patience));
}

TEST(WorkerPoolWake, AJobOfOneItemWakesAtMostTwoWorkers) {
  WorkerPool pool(0, 24, {});
  for (const unsigned active : {24U, 1U}) {
    pool.set_concurrency(active);
    EXPECT_LE(woken_by([&] { run_one(pool); }), 2U) << active << " active";
  }
}

TEST(WorkerPoolWake, NorDoesItWakeMoreOfThePoolsThatHelp) {
  Pools pools({6, 6, 6, 6});
  EXPECT_LE(woken_by([&] { run_one(pools[0]); }), 2U);
  pools[0].set_concurrency(0);
  EXPECT_LE(woken_by([&] { run_one(pools[0]); }), 2U) << "of a pool that is paused";
}

TEST(WorkerPoolWake, AsManyWakeAsThereAreItems) {
  WorkerPool pool(0, 13, {});
  for (int round = 0; round < 20; ++round) {
    Meeting meeting(13);
    std::atomic<int> met{0};
    pool.submit(&owner, job(13, [&](std::size_t, unsigned) { met += meeting.meet() ? 1 : 0; }));
    EXPECT_TRUE(eventually([&] { return met == 13; })) << "round " << round;
    EXPECT_TRUE(pool.cancel(&owner, patience));
  }
}

TEST(WorkerPoolWake, AllWorkersOfAllPoolsWakeForAPausedOnes) {
  Pools pools({4, 4, 4});
  pools[0].set_concurrency(0);
  for (int round = 0; round < 20; ++round) {
    Meeting meeting(8);
    std::atomic<int> met{0};
    pools[0].submit(&owner, job(8, [&](std::size_t, unsigned) { met += meeting.meet() ? 1 : 0; }));
    EXPECT_TRUE(eventually([&] { return met == 8; })) << "round " << round;
    EXPECT_TRUE(pools[0].cancel(&owner, patience));
  }
}

// A worker that was called for another pool's item gets an item of its own before it is awake:
// submitting takes far less time than waking.
TEST(WorkerPoolWake, AnOfferIsNotLostOnAWorkerThatIsBusy) {
  Pools pools({1, 1, 1});
  pools[0].set_concurrency(0);
  for (int round = 0; round < 200; ++round) {
    const auto gate = std::make_shared<Gate>();
    const OpensAtEnd opens(*gate);
    std::atomic<bool> ran{false};
    std::this_thread::sleep_for(1ms);  // all sleep
    pools[0].submit(&owner, job(1, [&](std::size_t, unsigned) { ran = true; }));
    pools[1].submit(&owner, job(1, [gate](std::size_t, unsigned) { gate->pass(); }), Help::never);
    const bool helped = eventually([&] { return ran.load(); }, patience / 3);
    gate->open();
    for (const auto& pool : pools.pools) ASSERT_TRUE(pool->cancel(&owner, patience));
    ASSERT_TRUE(helped) << "round " << round;
  }
}

TEST(WorkerPoolWake, ItemsAndConcurrencyThatChangeLoseNoWorker) {
  WorkerPool pool(0, 6, {});
  std::atomic<bool> ending{false};
  std::thread changer([&] {
    for (unsigned round = 0; !ending; ++round) pool.set_concurrency(1 + round % 6);
  });
  for (int round = 0; round < 3000; ++round) {
    std::atomic<int> ran{0};
    pool.submit(&owner, job(3, [&](std::size_t, unsigned) { ++ran; }));
    ASSERT_TRUE(eventually([&] { return ran == 3; })) << "round " << round;
    ASSERT_TRUE(pool.cancel(&owner, patience));
  }
  ending = true;
  changer.join();
}

}  // namespace
}  // namespace millrace
