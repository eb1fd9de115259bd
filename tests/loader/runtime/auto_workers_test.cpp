// SPDX-License-Identifier: Apache-2.0
#include "runtime/auto_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/runtime_services.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::SmallRun;

/// A trainer that takes a batch per second, if a batch costs `work` seconds of a worker.
AutoWorkers::Window second_with(unsigned workers, double work) {
  if (work <= workers) return {1, 0, work};
  // The workers are busy all the time, so a batch is ready every work / workers seconds.
  const double cycle = work / workers;
  return {1, (cycle - 1) / cycle, static_cast<double>(workers)};
}

/// Final number of workers, and the share of windows with stalls until then.
struct Settled {
  unsigned workers = 0;
  double stalled_windows = 0;
};
Settled settle(unsigned most, double work, int windows = 300) {
  AutoWorkers chooser(most);
  std::vector<unsigned> chosen;
  int stalls = 0;
  for (int window = 0; window < windows; ++window) {
    const AutoWorkers::Window seen = second_with(chooser.workers(), work);
    stalls += seen.stall_seconds > 0 ? 1 : 0;
    chosen.push_back(chooser.update(seen));
  }
  std::nth_element(chosen.begin(), chosen.begin() + windows / 2, chosen.end());
  return {chosen[static_cast<std::size_t>(windows) / 2], static_cast<double>(stalls) / windows};
}

TEST(AutoWorkers, SettlesOnTheFewestThatFeedTheTrainer) {
  for (const unsigned most : {1U, 2U, 8U, 64U})
    for (const double work : {0.2, 0.8, 1.5, 3.3, 20.0}) {
      const Settled settled = settle(most, work);
      const auto fewest = static_cast<unsigned>(std::ceil(work));
      EXPECT_GE(settled.workers, std::min(most, fewest)) << work << " of " << most;
      EXPECT_LE(settled.workers,
                std::min(most, std::max(fewest, static_cast<unsigned>(std::ceil(work * 1.1)))))
          << work << " of " << most;
      if (fewest <= most) {
        EXPECT_LT(settled.stalled_windows, 0.1) << work << " of " << most;
      }
    }
}

TEST(AutoWorkers, TakesAllWhenNoneAreEnough) {
  EXPECT_EQ(settle(4, 100).workers, 4U);
  AutoWorkers chooser(4);
  EXPECT_EQ(chooser.update({1, 1, 4}), 4U) << "a trainer that does nothing but wait";
}

TEST(AutoWorkers, ComesBackAtOnceWhenTheTrainerStalls) {
  AutoWorkers chooser(16);
  for (int window = 0; window < 100; ++window) chooser.update(second_with(chooser.workers(), 0.9));
  ASSERT_EQ(chooser.workers(), 1U);
  // The samples become ten times as expensive.
  int windows = 0;
  while (second_with(chooser.workers(), 9).stall_seconds > 0 && windows < 100) {
    chooser.update(second_with(chooser.workers(), 9));
    ++windows;
  }
  EXPECT_LE(windows, 2);
}

TEST(AutoWorkers, AnAdaptiveRuntimeFollowsTheNeed) {
  SmallRun run(100'000);
  run.options.runtime = make_runtime({.workers = 4, .adaptive = true});
  run.options.debug.trace = std::make_shared<Trace>();
  std::atomic<bool> slow{false};
  run.transform->on_begin = [&slow](const Record&) {
    std::this_thread::sleep_for(slow ? 2ms : std::chrono::microseconds(100));
  };
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(run.options.runtime->concurrency(), 4U);
  // A batch costs about 1 ms of a worker; a trainer that takes 10 ms needs one. On a busy machine a
  // batch costs more, so the trainer takes ever longer.
  const testing::Stopwatch watch;
  while (run.options.runtime->concurrency() > 1 && watch.elapsed() < 3 * testing::patience) {
    const Batch batch = pipeline.next();
    std::this_thread::sleep_for(10ms + watch.elapsed() / 50);
  }
  EXPECT_EQ(run.options.runtime->concurrency(), 1U);
  EXPECT_LT(pipeline.report().active_workers, 4);
  // A trainer that takes batches as fast as they are made needs all workers. The samples take far
  // longer than its own work.
  slow = true;
  const testing::Stopwatch again;
  while (run.options.runtime->concurrency() < 4 && again.elapsed() < 3 * testing::patience)
    (void)pipeline.next();
  EXPECT_EQ(run.options.runtime->concurrency(), 4U);
  std::set<std::int64_t> seen;
  for (const TraceLane& lane : run.options.debug.trace->lanes())
    if (lane.name == "active workers")
      for (const TraceValue& value : lane.values) seen.insert(value.value);
  EXPECT_TRUE(seen.contains(1) && seen.contains(4)) << "visible in the trace";
}

TEST(AutoWorkers, PipelinesOfARuntimeNeedTheirSum) {
  Runtime runtime({.workers = 8, .adaptive = true});
  RuntimeServices& services = RuntimeServices::of(runtime);
  const int train = 0;
  const int eval = 0;
  services.set_needed_workers(&train, 3);
  EXPECT_EQ(runtime.concurrency(), 3U);
  services.set_needed_workers(&eval, 2);
  EXPECT_EQ(runtime.concurrency(), 5U);
  services.set_needed_workers(&eval, 7);
  EXPECT_EQ(runtime.concurrency(), 8U) << "no more than there are";
  services.release(&eval);
  EXPECT_EQ(runtime.concurrency(), 3U);
  services.release(&train);
  EXPECT_GT(runtime.concurrency(), 0U);
}

TEST(AutoWorkers, AnotherRuntimeDoesNotListen) {
  Runtime runtime({.workers = 3});
  RuntimeServices::of(runtime).set_needed_workers(&runtime, 1);
  EXPECT_EQ(runtime.concurrency(), 3U);
}

}  // namespace
}  // namespace millrace
