// SPDX-License-Identifier: Apache-2.0
//
// Tests of pools that help each other.
#include <gmock/gmock.h>
#include <millrace/detail/worker_pool.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
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
using testing::other_owner;
using testing::owner;
using testing::patience;
using testing::Pools;
using testing::while_all_work;

/// Keeps one worker of a pool busy until the gate opens. The job shares ownership of the gate.
void keep_busy(WorkerPool& pool, const std::shared_ptr<Gate>& gate, const void* who = &owner,
               Help help = Help::never) {
  const std::size_t arrived = gate->arrived();
  pool.submit(who, job(1, [gate](std::size_t, unsigned) { EXPECT_TRUE(gate->pass()); }), help);
  ASSERT_TRUE(eventually([&] { return gate->arrived() > arrived; }));
}

TEST(WorkerPoolHelp, AnIdlePoolRunsABusyOnesItemsWithItsOwnNumbers) {
  Pools pools({1, 2});
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  keep_busy(pools[0], gate);
  std::mutex mutex;
  std::multiset<unsigned> numbers;
  std::atomic<int> ended{0};
  Meeting meeting(2);
  pools[0].submit(&other_owner, job(10, [&](std::size_t item, unsigned worker) {
    if (item < 2) {
      EXPECT_TRUE(meeting.meet()) << "both of its workers help";
    }
    {
      const std::lock_guard lock(mutex);
      numbers.insert(worker);
    }
    ++ended;
  }));
  EXPECT_TRUE(eventually([&] { return ended == 10; }));
  EXPECT_EQ(numbers.count(0), 0U);
  EXPECT_EQ(numbers.count(1) + numbers.count(2), 10U);
  gate->open();
}

TEST(WorkerPoolHelp, APoolWithAWorkerThatWaitsNeedsNone) {
  Pools pools({1, 3});
  const auto run_by_own = [&pools](int factor) {
    int own = 0;
    for (int round = 0; round < 100; ++round) {
      std::this_thread::sleep_for(1ms * factor);  // its worker then waits, or is very slow
      std::atomic<unsigned> ran_by{99};
      pools[0].submit(&owner, job(1, [&](std::size_t, unsigned worker) { ran_by = worker; }));
      EXPECT_TRUE(eventually([&] { return ran_by != 99; }));
      own += ran_by == 0 ? 1 : 0;
      EXPECT_TRUE(pools[0].cancel(&owner, patience));
    }
    return own;
  };
  EXPECT_GE(best_of_longer(run_by_own, [](int own) { return own >= 70; }), 70);
}

TEST(WorkerPoolHelp, IsCalledWhenTheLastOfItsWorkersHasBegun) {
  Pools pools({2, 1});
  for (int round = 0; round < 100; ++round) {
    Meeting meeting(3);
    std::atomic<int> met{0};
    pools[0].submit(&owner, job(3, [&](std::size_t, unsigned) { met += meeting.meet() ? 1 : 0; }));
    ASSERT_TRUE(eventually([&] { return met == 3; }, patience + 5s)) << "round " << round;
    ASSERT_TRUE(pools[0].cancel(&owner, patience));
  }
}

TEST(WorkerPoolHelp, ItsOwnItemsComeFirstThoughTheOthersAreOlder) {
  Pools pools({1, 1});
  const auto gate = std::make_shared<Gate>();
  const auto second_gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  const OpensAtEnd opens_second(*second_gate);
  keep_busy(pools[0], gate);
  keep_busy(pools[1], second_gate);
  std::mutex mutex;
  std::vector<char> order;
  std::atomic<int> ended{0};
  const auto items = [&](char name) {
    return job(20, [&, name](std::size_t, unsigned worker) {
      EXPECT_EQ(worker, 1U);
      {
        const std::lock_guard lock(mutex);
        order.push_back(name);
      }
      ++ended;
    });
  };
  pools[0].submit(&other_owner, items('o'));
  pools[1].submit(&other_owner, items('n'));
  second_gate->open();
  ASSERT_TRUE(eventually([&] { return ended == 40; }));
  EXPECT_EQ(std::string(order.begin(), order.end()), std::string(20, 'n') + std::string(20, 'o'));
  gate->open();
}

TEST(WorkerPoolHelp, GoesBackToItsOwnItemsAfterEachOfTheOthers) {
  Pools pools({1, 1});
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  keep_busy(pools[0], gate);
  std::atomic<int> helped{0};
  std::atomic<int> helped_before_own{-1};
  std::atomic<bool> ending{false};
  pools[0].submit(&other_owner, job(10'000, [&](std::size_t, unsigned) {
    ++helped;
    if (!ending) std::this_thread::sleep_for(1ms);
  }));
  ASSERT_TRUE(eventually([&] { return helped > 3; }));
  pools[1].submit(&owner,
                  job(1, [&](std::size_t, unsigned) { helped_before_own = helped.load(); }));
  ASSERT_TRUE(eventually([&] { return helped_before_own >= 0; }));
  EXPECT_LT(helped_before_own, 5000);
  ending = true;
  EXPECT_TRUE(eventually([&] { return helped == 10'000; }));
  gate->open();
}

TEST(WorkerPoolHelp, ComesNeverWhereItIsNotAllowed) {
  Pools pools({1, 2});
  pools[0].set_concurrency(0);
  std::atomic<int> ended{0};
  std::atomic<int> by_others{0};
  const auto confined = [&](std::size_t items) {
    return job(items, [&](std::size_t, unsigned worker) {
      by_others += worker == 0 ? 0 : 1;
      ++ended;
    });
  };
  std::atomic<int> open_ended{0};
  pools[0].submit(&owner, confined(50), Help::never);
  pools[0].submit(&other_owner, job(50, [&](std::size_t, unsigned) { ++open_ended; }));
  // The others have run all items that they may, and have looked at the rest.
  ASSERT_TRUE(eventually([&] { return open_ended == 50; }));
  EXPECT_EQ(ended, 0);
  pools[0].set_concurrency(1);
  EXPECT_TRUE(eventually([&] { return ended == 50; }));
  EXPECT_EQ(by_others, 0);
}

TEST(WorkerPoolHelp, ComesForAJobBehindOneThatIsConfined) {
  Pools pools({1, 1});
  const std::array gates{std::make_shared<Gate>(), std::make_shared<Gate>()};
  const OpensAtEnd opens_first(*gates[0]);
  const OpensAtEnd opens_second(*gates[1]);
  std::atomic<unsigned> ran_by{99};
  pools[0].submit(
      &owner, job(2, [gates](std::size_t item, unsigned) { EXPECT_TRUE(gates.at(item)->pass()); }),
      Help::never);
  ASSERT_TRUE(eventually([&] { return gates[0]->arrived() == 1; }));
  pools[0].submit(&owner, job(1, [&](std::size_t, unsigned worker) { ran_by = worker; }));
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(ran_by, 99U) << "jobs of an owner begin in order";
  gates[0]->open();
  EXPECT_TRUE(eventually([&] { return ran_by == 1; })) << "nobody was told of the second job";
  EXPECT_FALSE(gates[1]->is_open());
  gates[1]->open();
}

TEST(WorkerPoolHelp, OwnersTakeTurnsWithHelpers) {
  Pools pools({1, 1});
  pools[0].set_concurrency(0);
  while_all_work(pools[1], [&] { pools[1].set_concurrency(0); });
  std::vector<char> order;
  std::atomic<int> ended{0};
  const auto items = [&](char name) {
    return job(20, [&, name](std::size_t, unsigned) {
      order.push_back(name);
      ++ended;
    });
  };
  pools[0].submit(&owner, items('a'));
  pools[0].submit(&other_owner, items('b'));
  pools[1].set_concurrency(1);
  ASSERT_TRUE(eventually([&] { return ended == 40; }));
  for (std::size_t begin = 0; begin < order.size(); begin += 2)
    ASSERT_NE(order[begin], order[begin + 1]) << "at " << begin;
}

TEST(WorkerPoolHelp, IsNeverMissed) {
  for (const bool one_is_busy : {false, true}) {
    std::mt19937 random(7);
    // In pieces, since a gate stays closed for `patience` at most.
    for (int piece = 0; piece < 30; ++piece) {
      Pools pools({1, 1, 1});
      const auto gate = std::make_shared<Gate>();
      const OpensAtEnd opens(*gate);
      if (one_is_busy) keep_busy(pools[0], gate);
      for (int round = 100 * piece; round < 100 * (piece + 1); ++round) {
        std::atomic<unsigned> ended{0};
        const std::size_t items = 1 + random() % 4;
        const auto pool = static_cast<std::size_t>(one_is_busy ? 0 : round % 3);
        pools[pool].submit(&other_owner, job(items, [&](std::size_t, unsigned) { ++ended; }));
        if (round % 3 == 0) std::this_thread::yield();
        // Waits in growing steps: most items end at once.
        for (unsigned spin = 0; ended < items && spin < 20'000; ++spin) std::this_thread::yield();
        ASSERT_TRUE(eventually([&] { return ended == items; })) << "round " << round;
        ASSERT_TRUE(pools[pool].cancel(&other_owner, patience)) << "`ended` goes";
      }
      gate->open();
    }
  }
}

TEST(WorkerPoolHelp, IsNeverMissedByAPoolThatPauses) {
  Pools pools({1, 1});
  for (unsigned round = 0; round < 1000; ++round) {
    std::atomic<unsigned> ended{0};
    pools[0].submit(&owner, job(3, [&](std::size_t, unsigned) { ++ended; }));
    pools[0].set_concurrency(round % 2);
    ASSERT_TRUE(eventually([&] { return ended == 3; })) << "round " << round;
    ASSERT_TRUE(pools[0].cancel(&owner, patience));
  }
}

TEST(WorkerPoolHelp, APausedPoolNeitherBeginsNorHelpsButIsHelped) {
  Pools pools({1, 1});
  while_all_work(pools[1], [&] { pools[1].set_concurrency(0); });
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  keep_busy(pools[0], gate);
  std::atomic<int> ended{0};
  pools[0].submit(&other_owner, job(5, [&](std::size_t, unsigned) { ++ended; }));
  pools[1].submit(&other_owner, job(5, [&](std::size_t, unsigned worker) {
    EXPECT_EQ(worker, 0U);
    ++ended;
  }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(ended, 0) << "a paused pool worked";
  gate->open();
  EXPECT_TRUE(eventually([&] { return ended == 10; }));
}

TEST(WorkerPoolHelp, ConcurrencyHoldsForHelpToo) {
  Pools pools({1, 4});
  pools[0].set_concurrency(0);
  while_all_work(pools[1], [&] { pools[1].set_concurrency(2); });
  Meeting meeting(2);
  std::atomic<unsigned> running{0};
  std::atomic<unsigned> most{0};
  std::atomic<int> ended{0};
  pools[0].submit(&owner, job(200, [&](std::size_t item, unsigned) {
    const unsigned now = ++running;
    for (unsigned seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    if (item < 2) {
      EXPECT_TRUE(meeting.meet()) << "both of its active workers help";
    }
    std::this_thread::sleep_for(200us);
    --running;
    ++ended;
  }));
  EXPECT_TRUE(eventually([&] { return ended == 200; }));
  EXPECT_EQ(most, 2U);
}

TEST(WorkerPoolHelp, CancelWaitsForAHelpersItem) {
  Pools pools({1, 1});
  pools[0].set_concurrency(0);
  Gate gate;
  std::atomic<int> ran{0};
  std::atomic<bool> ended{false};
  const OpensAtEnd opens(gate);
  auto helped = job(10, [&](std::size_t, unsigned) {
    ++ran;
    EXPECT_TRUE(gate.pass());
    std::this_thread::sleep_for(20ms);
    ended = true;
  });
  const std::weak_ptr<Job> watched = helped;
  pools[0].submit(&owner, std::move(helped));
  ASSERT_TRUE(eventually([&] { return gate.arrived() == 1; }));
  EXPECT_FALSE(pools[0].cancel(&owner, 30ms));
  auto cancelled = std::async(std::launch::async,
                              [&] { return pools[0].cancel(&owner, patience) && ended.load(); });
  EXPECT_EQ(cancelled.wait_for(50ms), std::future_status::timeout)
      << "cancel did not wait for the helper's item";
  gate.open();
  EXPECT_TRUE(cancelled.get());
  EXPECT_TRUE(watched.expired()) << "a cancelled job is kept";
  EXPECT_EQ(ran, 1);
}

TEST(WorkerPoolHelp, PoolsMayEndInAnyOrderAndWaitForTheirHelpers) {
  for (const std::array<std::size_t, 3> order :
       {std::array<std::size_t, 3>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
    Pools pools({1, 2, 1});
    std::atomic<int> begun{0};
    std::atomic<int> running{0};
    pools[0].set_concurrency(0);
    pools[0].submit(&owner, job(100'000, [&](std::size_t, unsigned) {
      ++running;
      ++begun;
      std::this_thread::sleep_for(5ms);
      --running;
    }));
    ASSERT_TRUE(eventually([&] { return begun > 5; }));
    for (const std::size_t pool : order) {
      pools[pool].stop(WorkerPool::Clock::now() + patience);
      pools.pools[pool].reset();
      if (pool == 0) {
        EXPECT_EQ(running, 0) << "an item outlived its pool";
      }
    }
    EXPECT_EQ(running, 0);
  }
}

class HelpersStuckItem : public ::testing::TestWithParam<std::size_t> {};

TEST_P(HelpersStuckItem, IsLetGoWhicheverPoolEndsFirst) {
  const std::size_t first = GetParam();
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  auto stuck = job(1, [gate](std::size_t, unsigned) { EXPECT_TRUE(gate->pass()); });
  const std::weak_ptr<Job> watched = stuck;
  Pools pools({1, 1});
  pools[0].set_concurrency(0);
  pools[0].submit(&owner, std::move(stuck));
  ASSERT_TRUE(eventually([&] { return gate->arrived() == 1; }));
  const testing::Stopwatch time;
  pools.pools[first].reset();
  pools.pools[1 - first].reset();
  EXPECT_GE(time.elapsed(), 450ms);
  EXPECT_LT(time.elapsed(), 10s);
  EXPECT_FALSE(watched.expired()) << "the job was taken from under its item";
  gate->open();
  EXPECT_TRUE(eventually([&] { return watched.expired(); })) << "the thread did not end by itself";
  std::this_thread::sleep_for(50ms);  // time for the thread's last steps
}

INSTANTIATE_TEST_SUITE_P(WorkerPoolHelp, HelpersStuckItem, ::testing::Values(0, 1));

}  // namespace
}  // namespace millrace
