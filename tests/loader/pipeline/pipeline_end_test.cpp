// SPDX-License-Identifier: Apache-2.0
//
// Tests of the total time that a run's end takes when parts of it hang.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>
#include <millrace/topology.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using ::testing::HasSubstr;
using testing::OpensAtEnd;
using testing::patience;
using testing::SmallRun;
using testing::Stopwatch;

/// Pools with one worker each, all of which are stuck, and whether the trainer holds the runtime.
class StuckPools : public ::testing::TestWithParam<std::tuple<unsigned, bool>> {
 protected:
  unsigned pools() const { return std::get<0>(GetParam()); }
  std::chrono::nanoseconds time_of_end() const;
};
INSTANTIATE_TEST_SUITE_P(Pools, StuckPools,
                         ::testing::Combine(::testing::Values(1U, 2U, 8U), ::testing::Bool()));

/// Returns how long a pipeline with a stuck worker in each pool takes to end.
std::chrono::nanoseconds StuckPools::time_of_end() const {
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  SmallRun run(1000);
  run.options.batch_size = 32;
  run.options.debug.stop_timeout = 100ms;
  run.transform->on_begin = [gate](const Record&) { EXPECT_TRUE(gate->pass()); };
  run.options.runtime = make_runtime(
      {.workers = pools(),
       .numa = Numa::off,
       .topology = synthetic_topology("pack:" + std::to_string(pools()) + " [numa] core:1 pu:1")});
  const std::weak_ptr<Runtime> watched = run.options.runtime;
  const std::weak_ptr<testing::StampTransform> used = run.transform;
  std::shared_ptr<Runtime> shared = std::get<1>(GetParam()) ? run.options.runtime : nullptr;
  std::optional<Pipeline> pipeline(run.pipeline());
  run = SmallRun(1);
  EXPECT_TRUE(eventually([&] { return gate->arrived() == pools(); }));
  const Stopwatch time;
  pipeline.reset();
  shared.reset();
  const auto took = time.elapsed();
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(used.expired()) << "what still runs must be kept";
  gate->open();
  EXPECT_TRUE(eventually([&] { return used.expired(); }));
  std::this_thread::sleep_for(20ms);  // time for the threads' last steps
  return took;
}

TEST_P(StuckPools, AreWaitedForOnceAllTogether) {
  const auto took = testing::best_of_three(
      [this] { return time_of_end(); }, [](std::chrono::nanoseconds time) { return time < 550ms; });
  EXPECT_GE(took, 100ms);
  // Waiting half a second more for each pool, or once more for the runtime, would be too long.
  EXPECT_LT(took, 550ms);
}

TEST(PipelineEnd, AStopTimeoutMayBeForEver) {
  for (const auto timeout : {std::chrono::milliseconds(std::chrono::hours(24 * 365 * 300)),
                             std::chrono::milliseconds::max()}) {
    SmallRun run(800);
    run.options.debug.stop_timeout = timeout;
    run.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(1ms); };
    Pipeline pipeline = run.pipeline();
    EXPECT_TRUE(pipeline.next());
    EXPECT_NO_THROW(pipeline.stop()) << timeout.count() << " ms";
  }
}

/// Runs `act` in a child of fork(). Returns true if the child ended by itself, with success.
template <typename Act>
bool child_does(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 1;
  const bool ended = eventually([&] { return waitpid(child, &status, WNOHANG) == child; });
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class Fork : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Copies, Fork, ::testing::Bool());

TEST_P(Fork, AChildLetsGoOfEverythingAtOnce) {
  SmallRun run(100'000, GetParam());
  run.workers(2);
  run.options.slots.prefetch = 3;
  run.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(20us); };
  std::shared_ptr<Runtime> runtime = run.options.runtime;
  std::optional<HostStream> stream(std::in_place);
  std::optional<Pipeline> pipeline(run.pipeline());
  run.options.runtime.reset();
  for (int round = 0; round < 20; ++round) {
    std::optional<Batch> batch(pipeline->next(*stream));
    ASSERT_TRUE(child_does([&] {
      EXPECT_THAT(error_of([&] { (void)pipeline->next(); }).what(), HasSubstr("child"));
      if (round % 2 == 0) batch.reset();
      pipeline.reset();
      batch.reset();
      runtime.reset();
      stream.reset();
    })) << "round "
        << round;
  }
  EXPECT_TRUE(pipeline->next({.timeout = patience})) << "the parent goes on";
}

TEST(ForkedRuntime, IsRefusedInTheChild) {
  SmallRun run(100);
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  ASSERT_TRUE(pipeline.next());
  EXPECT_TRUE(child_does([&] {
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("the runtime was made before fork()"));
    EXPECT_THAT(error_of([&] { (void)save_hints(run.dataset, *run.options.runtime); }).what(),
                HasSubstr("the runtime was made before fork()"));
  }));
  EXPECT_TRUE(pipeline.next({.timeout = patience})) << "the parent goes on";
}

}  // namespace
}  // namespace millrace
