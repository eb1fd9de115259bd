// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/worker_pool.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_job.h"
#include "support/helping_pools.h"
#include "support/sanitizers.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::Gate;
using testing::job;
using testing::Meeting;
using testing::OpensAtEnd;
using testing::other_owner;
using testing::owner;
using testing::patience;
using testing::Stopwatch;

TEST(WorkerPool, OneWorkerRunsItemsAndJobsInOrder) {
  WorkerPool pool(0, 1, {});
  std::vector<std::size_t> order;
  std::atomic<bool> done{false};
  pool.set_concurrency(0);
  for (std::size_t first : {0U, 10U, 20U})
    pool.submit(&owner, job(10, [&order, first](std::size_t item, unsigned) {
      order.push_back(first + item);
    }));
  pool.submit(&owner, job(1, [&](std::size_t, unsigned) { done = true; }));
  pool.set_concurrency(1);
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  ASSERT_EQ(order.size(), 30U);
  for (std::size_t n = 0; n < order.size(); ++n) EXPECT_EQ(order[n], n);
}

TEST(WorkerPool, RunsEachItemOnceAndBeginsThemInOrder) {
  constexpr unsigned workers = 4;
  constexpr std::size_t items = 2000;
  std::array<std::atomic<int>, items> runs{};
  std::atomic<std::size_t> begun{0};
  std::atomic<std::size_t> ended{0};
  std::atomic<bool> in_order{true};
  WorkerPool pool(0, workers, {});
  pool.submit(&owner, job(items, [&](std::size_t item, unsigned) {
    // All items before this one have begun, but for those that the other workers have just taken.
    if (++begun + workers < item + 1) in_order = false;
    ++runs[item];
    ++ended;
  }));
  ASSERT_TRUE(eventually([&] { return ended == items; }));
  EXPECT_TRUE(in_order);
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& count) { return count == 1; }));
}

class WorkersAtOnce : public ::testing::TestWithParam<unsigned> {};

TEST_P(WorkersAtOnce, RunAsManyItemsAtTheSameTime) {
  const unsigned workers = GetParam();
  WorkerPool pool(0, workers, {});
  Meeting meeting(workers);
  std::atomic<unsigned> met{0};
  std::atomic<unsigned> ended{0};
  pool.submit(&owner, job(workers, [&](std::size_t, unsigned) {
    met += meeting.meet() ? 1 : 0;
    ++ended;
  }));
  ASSERT_TRUE(eventually([&] { return ended == workers; }, patience + 5s));
  EXPECT_EQ(met, workers) << "not all items ran at the same time";
}

INSTANTIATE_TEST_SUITE_P(WorkerPool, WorkersAtOnce, ::testing::Values(1, 2, 4, 7));

TEST(WorkerPool, WorkersOfTwoPoolsRunAtTheSameTime) {
  WorkerPool first(0, 2, {});
  WorkerPool second(2, 2, {});
  Meeting meeting(4);
  std::atomic<unsigned> met{0};
  std::atomic<unsigned> ended{0};
  for (WorkerPool* pool : {&first, &second})
    pool->submit(&owner, job(2, [&](std::size_t, unsigned) {
      met += meeting.meet() ? 1 : 0;
      ++ended;
    }));
  ASSERT_TRUE(eventually([&] { return ended == 4; }, patience + 5s));
  EXPECT_EQ(met, 4U);
}

TEST(WorkerPool, NumbersItsWorkersAndNeverUsesANumberTwiceAtOnce) {
  std::array<std::atomic<int>, 13> running{};
  std::array<std::atomic<int>, 13> used{};
  std::atomic<bool> overlapped{false};
  std::atomic<bool> in_range{true};
  std::atomic<int> ended{0};
  WorkerPool pool(10, 3, {});
  EXPECT_EQ(pool.workers(), 3U);
  Meeting meeting(3);
  pool.submit(&owner, job(300, [&](std::size_t item, unsigned worker) {
    if (worker < 10 || worker > 12)
      in_range = false;
    else {
      if (running[worker]++ != 0) overlapped = true;
      if (item < 3) {
        EXPECT_TRUE(meeting.meet());
      }
      std::this_thread::sleep_for(100us);
      ++used[worker];
      --running[worker];
    }
    ++ended;
  }));
  ASSERT_TRUE(eventually([&] { return ended == 300; }));
  EXPECT_TRUE(in_range);
  EXPECT_FALSE(overlapped);
  for (unsigned worker = 10; worker < 13; ++worker) EXPECT_GT(used[worker], 0) << worker;
}

TEST(WorkerPool, PausesAtConcurrencyZero) {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<bool> ending{false};
  WorkerPool pool(0, 2, {});
  pool.submit(&other_owner, job(100'000, [&](std::size_t, unsigned) {
    ++begun;
    if (!ending) std::this_thread::sleep_for(200us);
    ++ended;
  }));
  ASSERT_TRUE(eventually([&] { return begun > 10; }));
  testing::while_all_work(pool, [&] { pool.set_concurrency(0); });
  EXPECT_EQ(pool.concurrency(), 0U);
  const int before = begun;
  EXPECT_EQ(ended, before);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(begun, before);
  EXPECT_LT(before, 100'000);
  ending = true;
  pool.set_concurrency(2);
  EXPECT_TRUE(eventually([&] { return ended == 100'000; }));
}

TEST(WorkerPool, ChangesItsConcurrencyWhileRunning) {
  std::atomic<unsigned> running{0};
  std::atomic<unsigned> most{0};
  std::atomic<bool> ending{false};
  WorkerPool pool(0, 4, {});
  std::atomic<int> ended{0};
  pool.submit(&other_owner, job(100'000, [&](std::size_t, unsigned) {
    ++ended;
    if (ending) return;
    const unsigned now = ++running;
    for (unsigned seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    std::this_thread::sleep_for(500us);
    --running;
  }));
  EXPECT_TRUE(eventually([&] { return most == 4; }));
  for (const unsigned concurrency : {1U, 3U, 2U}) {
    testing::while_all_work(pool, [&] {
      pool.set_concurrency(concurrency);
      most = 0;
    });
    EXPECT_EQ(pool.concurrency(), concurrency);
    EXPECT_TRUE(eventually([&] { return most == concurrency; }));
    std::this_thread::sleep_for(30ms);
    EXPECT_EQ(most, concurrency);
  }
  pool.set_concurrency(100);
  EXPECT_EQ(pool.concurrency(), 4U) << "more than there are counts as all";
  most = 0;
  EXPECT_TRUE(eventually([&] { return most == 4; }));
  ending = true;
  EXPECT_TRUE(eventually([&] { return ended == 100'000; }));
}

TEST(WorkerPool, OwnersTakeTurnsItemByItem) {
  WorkerPool pool(0, 1, {});
  pool.set_concurrency(0);
  std::vector<char> order;
  std::atomic<int> ended{0};
  const auto items = [&](char name, std::size_t count) {
    return job(count, [&, name](std::size_t, unsigned) {
      order.push_back(name);
      ++ended;
    });
  };
  const std::array<int, 3> owners{};
  for (int round = 0; round < 4; ++round) pool.submit(&owners[0], items('a', 10));
  pool.submit(&owners[1], items('b', 40));
  pool.submit(&owners[2], items('c', 40));
  pool.set_concurrency(1);
  ASSERT_TRUE(eventually([&] { return ended == 120; }));
  for (std::size_t begin = 0; begin + 3 <= order.size(); begin += 3)
    ASSERT_EQ(std::set<char>(order.begin() + static_cast<long>(begin),
                             order.begin() + static_cast<long>(begin) + 3)
                  .size(),
              3U)
        << "at item " << begin << ": " << std::string(order.begin(), order.end());
}

TEST(WorkerPool, ALateOwnerNeedNotWaitForTheFirstOnesJobs) {
  WorkerPool pool(0, 1, {});
  std::atomic<std::size_t> of_first{0};
  std::atomic<std::size_t> of_first_before_second{0};
  std::atomic<bool> second_ran{false};
  std::atomic<bool> ending{false};
  constexpr std::size_t items = 10'000;
  pool.submit(&owner, job(items, [&](std::size_t, unsigned) {
    ++of_first;
    if (!ending) std::this_thread::sleep_for(1ms);
  }));
  ASSERT_TRUE(eventually([&] { return of_first > 3; }));
  pool.submit(&other_owner, job(1, [&](std::size_t, unsigned) {
    of_first_before_second = of_first.load();
    second_ran = true;
  }));
  ASSERT_TRUE(eventually([&] { return second_ran.load(); }));
  EXPECT_LT(of_first_before_second, items / 2);
  ending = true;
  EXPECT_TRUE(eventually([&] { return of_first == items; }));
}

TEST(WorkerPool, CancelDropsWhatHasNotBegunAndWaitsForTheRest) {
  WorkerPool pool(0, 1, {});
  Gate gate;
  std::atomic<int> ran{0};
  std::atomic<bool> ended{false};
  std::atomic<bool> other_ran{false};
  const OpensAtEnd opens(gate);
  auto first = job(10, [&](std::size_t, unsigned) {
    ++ran;
    EXPECT_TRUE(gate.pass());
    std::this_thread::sleep_for(20ms);
    ended = true;
  });
  const std::weak_ptr<Job> watched = first;
  pool.submit(&owner, std::move(first));
  pool.submit(&owner, job(10, [&](std::size_t, unsigned) { ++ran; }));
  pool.submit(&other_owner, job(1, [&](std::size_t, unsigned) { other_ran = true; }));
  ASSERT_TRUE(eventually([&] { return gate.arrived() == 1; }));
  EXPECT_FALSE(pool.cancel(&owner, 0ns));
  auto cancelled = std::async(std::launch::async, [&] {
    const bool all_ended = pool.cancel(&owner, patience);
    return all_ended && ended.load();
  });
  EXPECT_EQ(cancelled.wait_for(50ms), std::future_status::timeout)
      << "cancel did not wait for the item that runs";
  gate.open();
  EXPECT_TRUE(cancelled.get());
  EXPECT_TRUE(watched.expired()) << "a cancelled job is kept";
  EXPECT_TRUE(eventually([&] { return other_ran.load(); }));
  EXPECT_EQ(ran, 1);
}

TEST(WorkerPool, CancelGivesUpOnAStuckItem) {
  WorkerPool pool(0, 2, {});
  Gate gate;
  const OpensAtEnd opens(gate);
  pool.submit(&owner, job(1, [&](std::size_t, unsigned) { EXPECT_TRUE(gate.pass()); }));
  ASSERT_TRUE(eventually([&] { return gate.arrived() == 1; }));
  const Stopwatch time;
  EXPECT_FALSE(pool.cancel(&owner, 100ms));
  EXPECT_GE(time.elapsed(), 100ms);
  EXPECT_LT(time.elapsed(), patience);
  std::atomic<bool> ran{false};
  pool.submit(&other_owner, job(1, [&](std::size_t, unsigned) { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); })) << "the other worker goes on";
  gate.open();
  EXPECT_TRUE(pool.cancel(&owner, patience));
}

TEST(WorkerPool, CancelOfAnIdleOwnerReturnsAtOnceAndItMayGoOn) {
  WorkerPool pool(0, 2, {});
  EXPECT_TRUE(pool.cancel(&owner, 0ns));
  std::atomic<int> ran{0};
  pool.set_concurrency(0);
  pool.submit(&owner, job(5, [&](std::size_t, unsigned) { ++ran; }));
  EXPECT_TRUE(pool.cancel(&owner, 0ns));
  pool.set_concurrency(2);
  pool.submit(&owner, job(7, [&](std::size_t, unsigned) { ++ran; }));
  EXPECT_TRUE(eventually([&] { return ran == 7; }));
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(ran, 7);
}

TEST(WorkerPool, AJobWithoutItemsIsNoTrouble) {
  WorkerPool pool(0, 1, {});
  std::atomic<bool> ran{false};
  pool.submit(&owner,
              job(0, [](std::size_t, unsigned) { ADD_FAILURE() << "ran an item of none"; }));
  pool.submit(&owner, job(1, [&](std::size_t, unsigned) { ran = true; }));
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

TEST(WorkerPool, AnItemMaySubmitFurtherWork) {
  WorkerPool pool(0, 1, {});
  std::atomic<bool> ran{false};
  pool.submit(&owner, job(1, [&](std::size_t, unsigned) {
    pool.submit(&owner, job(1, [&](std::size_t, unsigned) { ran = true; }));
  }));
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

TEST(WorkerPool, EndsWhenTheCurrentItemsAreDone) {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  {
    WorkerPool pool(0, 2, {});
    pool.submit(&owner, job(1000, [&](std::size_t, unsigned) {
      ++begun;
      std::this_thread::sleep_for(20ms);
      ++ended;
    }));
    ASSERT_TRUE(eventually([&] { return begun >= 2; }));
    pool.stop(WorkerPool::Clock::now() + patience);
  }
  EXPECT_EQ(begun, ended);
  EXPECT_LT(ended, 1000);
}

TEST(WorkerPool, EndsWhilePaused) {
  WorkerPool pool(0, 2, {});
  pool.set_concurrency(0);
  pool.submit(&owner, job(10, [](std::size_t, unsigned) {}));
  const Stopwatch time;
  pool.stop(WorkerPool::Clock::now() + patience);
  EXPECT_LT(time.elapsed(), patience);
}

TEST(WorkerPool, LetsAStuckItemGoAfterHalfASecond) {
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  auto stuck = job(1, [gate](std::size_t, unsigned) { EXPECT_TRUE(gate->pass()); });
  const std::weak_ptr<Job> watched = stuck;
  auto pool = std::make_unique<WorkerPool>(0U, 2U, std::vector<int>());
  pool->submit(&owner, std::move(stuck));
  ASSERT_TRUE(eventually([&] { return gate->arrived() == 1; }));
  const Stopwatch time;
  pool.reset();
  EXPECT_GE(time.elapsed(), 450ms);
  EXPECT_LT(time.elapsed(), 3s);
  EXPECT_FALSE(watched.expired()) << "the job was taken from under its item";
  gate->open();
  EXPECT_TRUE(eventually([&] { return watched.expired(); })) << "the thread did not end by itself";
  std::this_thread::sleep_for(50ms);  // time for the thread's last steps
}

TEST(WorkerPool, ParallelAlgorithmsInAnItemStayOnItsWorkers) {
#if defined(MILLRACE_TSAN)
  GTEST_SKIP() << "oneTBB's own synchronisation is not instrumented";
#endif
  WorkerPool pool(0, 3, {});
  std::mutex mutex;
  std::set<std::thread::id> workers;
  Meeting meeting(3);
  std::atomic<int> ended{0};
  pool.submit(&owner, job(3, [&](std::size_t, unsigned) {
    EXPECT_TRUE(meeting.meet());
    {
      std::lock_guard lock(mutex);
      workers.insert(std::this_thread::get_id());
    }
    ++ended;
  }));
  ASSERT_TRUE(eventually([&] { return ended == 3; }));
  ASSERT_EQ(workers.size(), 3U);
  std::set<std::thread::id> used;
  std::atomic<int> parts{0};
  pool.submit(&owner, job(3, [&](std::size_t, unsigned) {
    tbb::parallel_for(0, 300, [&](int) {
      std::this_thread::sleep_for(10us);
      ++parts;
      std::lock_guard lock(mutex);
      used.insert(std::this_thread::get_id());
    });
    ++ended;
  }));
  ASSERT_TRUE(eventually([&] { return ended == 6; }));
  EXPECT_EQ(parts, 900);
  EXPECT_TRUE(std::includes(workers.begin(), workers.end(), used.begin(), used.end()))
      << "a thread that is not ours ran part of an item";
}

}  // namespace
}  // namespace millrace
