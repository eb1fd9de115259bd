// SPDX-License-Identifier: Apache-2.0
//
// Tests of runs that end early: every state can be left, in bounded time.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::DeviceCall;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using ::testing::HasSubstr;
using testing::HookDevice;
using testing::OpensAtEnd;
using testing::patience;
using testing::SmallRun;
using testing::Stopwatch;

/// The limit is two seconds; the rest is for a busy machine.
constexpr std::chrono::milliseconds bound{3500};

/// Expects that the pipeline is destroyed in time.
void expect_ends(std::optional<Pipeline>& pipeline) {
  const Stopwatch time;
  pipeline.reset();
  EXPECT_LT(time.elapsed(), bound);
}

class PipelineShutdown : public ::testing::TestWithParam<bool> {
 protected:
  SmallRun run{80'000, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Copies, PipelineShutdown, ::testing::Bool());

TEST_P(PipelineShutdown, JustBuilt) {
  for (int again = 0; again < 20; ++again) {
    std::optional<Pipeline> pipeline(run.pipeline());
    expect_ends(pipeline);
  }
}

TEST_P(PipelineShutdown, MidRun) {
  run.workers(2);
  run.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(100us); };
  for (int batches = 0; batches < 10; ++batches) {
    std::optional<Pipeline> pipeline(run.pipeline());
    for (int n = 0; n < batches; ++n) (void)pipeline->next();
    expect_ends(pipeline);
  }
}

TEST_P(PipelineShutdown, AfterTheEnd) {
  run = SmallRun(20, GetParam());
  std::optional<Pipeline> pipeline(run.pipeline());
  EXPECT_EQ(testing::take(*pipeline).size(), 3U);
  expect_ends(pipeline);
}

TEST_P(PipelineShutdown, EarlyBreakWithLiveBatches) {
  HostStream stream;
  std::vector<Batch> live;
  std::optional<Pipeline> pipeline(run.pipeline());
  for (int n = 0; n < 2; ++n) live.push_back(pipeline->next(stream));
  expect_ends(pipeline);
  stream.synchronize();
  for (std::uint64_t n = 0; n < 2; ++n)
    testing::expect_positions(testing::contents(live[n]), run.sampler(), 42, n * 8);
}

TEST_P(PipelineShutdown, EarlyBreakInTheMiddleOfABatch) {
  run.options.slots.micro_batches = 4;
  HostStream stream;
  std::optional<Pipeline> pipeline(run.pipeline());
  for (const MicroBatch& part : pipeline->next_in_micro_batches(stream).micro_batches()) {
    (void)part;
    break;
  }
  expect_ends(pipeline);
}

TEST_P(PipelineShutdown, WhileTheTrainersStreamIsHeldUp) {
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  std::optional<Pipeline> pipeline(run.pipeline());
  {
    const Batch batch = pipeline->next(stream);
    stream.launch([&gate, images = batch.images().as<std::uint8_t>()] {
      EXPECT_TRUE(gate.pass());
      EXPECT_EQ(images[0], images[0]);  // its memory must still be there
    });
  }
  expect_ends(pipeline);
  EXPECT_FALSE(gate.is_open());
  gate.open();
  stream.synchronize();
}

TEST_P(PipelineShutdown, WhileTheRuntimeIsPaused) {
  run.workers(2);
  run.options.runtime->set_concurrency(0);
  std::optional<Pipeline> pipeline(run.pipeline());
  std::this_thread::sleep_for(20ms);
  expect_ends(pipeline);
}

TEST_P(PipelineShutdown, AfterAnError) {
  run.transform->on_end = [](const Record&) -> Status { throw std::runtime_error("broken"); };
  std::optional<Pipeline> pipeline(run.pipeline());
  EXPECT_THROW((void)pipeline->next(), Error);
  expect_ends(pipeline);
}

TEST_P(PipelineShutdown, AThreadInNextGetsStopped) {
  Gate gate;
  run.transform->on_begin = [&gate](const Record&) { EXPECT_TRUE(gate.pass()); };
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  const OpensAtEnd opens(gate);
  auto trainer = std::async(
      std::launch::async, [&pipeline] { return error_of([&] { (void)pipeline.next(); }).code(); });
  auto second = std::async(std::launch::async, [&pipeline] {
    HostStream stream;
    return error_of([&] { (void)pipeline.next(stream, patience); }).code();
  });
  std::this_thread::sleep_for(30ms);
  auto stopping = std::async(std::launch::async, [&pipeline] {
    try {
      pipeline.stop();
    } catch (const Error&) {  // the workers are blocked at the gate
    }
  });
  EXPECT_EQ(trainer.wait_for(patience), std::future_status::ready);
  EXPECT_EQ(trainer.get(), ErrorCode::stopped);
  EXPECT_EQ(second.get(), ErrorCode::stopped);
  gate.open();
  stopping.get();
  EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).code(), ErrorCode::stopped);
}

TEST_P(PipelineShutdown, AThreadWaitingForAPartGetsStopped) {
  Gate gate;
  run.options.order = Order::sequential();
  run.options.slots.micro_batches = 2;
  run.transform->on_begin = [&gate](const Record& record) {
    if (record.index() >= 4) {
      EXPECT_TRUE(gate.pass());
    }
  };
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  const OpensAtEnd opens(gate);
  HostStream stream;
  auto trainer = std::async(std::launch::async, [&] {
    const Batch batch = pipeline.next_in_micro_batches(stream);
    return error_of([&] {
             for (const MicroBatch& part : batch.micro_batches()) (void)part;
           })
        .code();
  });
  ASSERT_TRUE(eventually([&] { return pipeline.report().batches == 1 && gate.arrived() > 0; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(error_of([&] { pipeline.stop(); }).code(), ErrorCode::timeout);
  EXPECT_EQ(trainer.wait_for(patience), std::future_status::ready);
  EXPECT_EQ(trainer.get(), ErrorCode::stopped);
}

TEST_P(PipelineShutdown, DestructionWhileAThreadIsInNext) {
  const auto gate = std::make_shared<Gate>();  // the workers that are detached reach it later
  run.transform->on_begin = [gate](const Record&) { EXPECT_TRUE(gate->pass()); };
  run.workers(2);
  run.options.debug.stop_timeout = 200ms;
  const OpensAtEnd opens(*gate);
  std::optional<Pipeline> pipeline(run.pipeline());
  Pipeline* shared = &*pipeline;
  std::atomic<pid_t> asking{0};
  auto trainer = std::async(std::launch::async, [shared, &asking] {
    asking = gettid();
    return error_of([&] { (void)shared->next(); }).code();
  });
  // A thread that has not called it yet would call it on a pipeline that is gone.
  ASSERT_TRUE(eventually(
      [&] { return gate->arrived() == 2 && asking != 0 && testing::is_asleep(asking); }));
  std::this_thread::sleep_for(100ms);
  expect_ends(pipeline);
  EXPECT_EQ(trainer.wait_for(patience), std::future_status::ready);
  EXPECT_EQ(trainer.get(), ErrorCode::stopped);
}

TEST_P(PipelineShutdown, StopTwiceAndFromTwoThreads) {
  Pipeline pipeline = run.pipeline();
  (void)pipeline.next();
  {
    std::jthread other([&pipeline] { pipeline.stop(); });
    pipeline.stop();
  }
  pipeline.stop();
  EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).code(), ErrorCode::stopped);
  EXPECT_EQ(pipeline.state().position, 8U);
  EXPECT_EQ(pipeline.report().batches, 1U);
}

TEST_P(PipelineShutdown, StopsAtOnceWhenNothingIsStuck) {
  run.options.debug.stop_timeout = patience;
  Pipeline pipeline = run.pipeline();
  (void)pipeline.next();
  const Stopwatch time;
  pipeline.stop();
  EXPECT_LT(time.elapsed(), patience) << "the stop_timeout was waited for";
}

/// A part of the run is stuck at a gate until the test opens it. Then everything must be destroyed
/// by itself. `watched` is an object that the stuck part uses: the transform, if the test gives no
/// other.
void expect_bounded(SmallRun run, Gate& gate, const std::vector<std::string>& in_message,
                    bool shared_runtime, std::weak_ptr<const void> watched = {}) {
  if (watched.expired()) watched = run.transform;
  std::vector<std::string> told;
  run.options.debug.on_stuck = [&told](std::string_view what) { told.emplace_back(what); };
  if (shared_runtime) run.workers(2);
  const std::shared_ptr<Runtime> runtime = run.options.runtime;
  {
    std::optional<Pipeline> pipeline(run.pipeline());
    run = SmallRun(1);
    ASSERT_TRUE(eventually([&] { return gate.arrived() > 0; }));
    expect_ends(pipeline);
  }
  EXPECT_EQ(told.size(), 1U);
  for (const std::string& message : told)
    for (const std::string& part : in_message) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_FALSE(watched.expired()) << "what still runs must be kept";
  gate.open();
  EXPECT_TRUE(eventually([&] { return watched.expired(); }))
      << "what was stuck did not go when it could";
  std::this_thread::sleep_for(100ms);  // time for the threads' last steps
}

TEST_P(PipelineShutdown, AStuckTransformIsNamedAndLetGo) {
  for (const bool shared_runtime : {true, false}) {
    const auto gate = std::make_shared<Gate>();
    SmallRun stuck(80, GetParam());
    stuck.options.order = Order::sequential();
    stuck.transform->on_end = [gate](const Record& record) {
      if (record.index() == 3) {
        EXPECT_TRUE(gate->pass());
      }
      return Status::ok();
    };
    expect_bounded(std::move(stuck), *gate, {"finish", "3"}, shared_runtime);
  }
}

TEST_P(PipelineShutdown, AStuckReadIsNamedAndLetGo) {
  const auto gate = std::make_shared<Gate>();
  SmallRun stuck(80, GetParam());
  stuck.options.order = Order::sequential();
  stuck.dataset->on_read = [gate](std::uint64_t index) {
    if (index == 5) {
      EXPECT_TRUE(gate->pass());
    }
  };
  expect_bounded(std::move(stuck), *gate, {"read", "5"}, true);
}

TEST_P(PipelineShutdown, AStuckPrefetchIsLetGo) {
  const auto gate = std::make_shared<Gate>();
  SmallRun stuck(80, GetParam());
  stuck.dataset->on_prefetch = [gate](std::span<const std::uint64_t>) {
    EXPECT_TRUE(gate->pass());
  };
  const std::weak_ptr<const void> dataset = stuck.dataset;
  expect_bounded(std::move(stuck), *gate, {"prefetching from memory"}, true, dataset);
}

TEST(PipelineStop, AStuckDeviceCallIsLetGo) {
  for (const DeviceCall call : {DeviceCall::copy, DeviceCall::record, DeviceCall::event_wait}) {
    SCOPED_TRACE(to_string(call));
    const auto gate = std::make_shared<Gate>();
    SmallRun stuck(80);
    stuck.device = std::make_shared<HookDevice>(true, [gate, call](DeviceCall now) {
      if (now == call) {
        EXPECT_TRUE(gate->pass());
      }
    });
    expect_bounded(std::move(stuck), *gate, {}, true);
  }
}

// The event's time is read without holding the lock that stopping needs.
TEST(PipelineStop, AnEventThatDoesNotTellItsTimeIsLetGo) {
  const auto gate = std::make_shared<Gate>();
  SmallRun stuck(80);
  const auto device = std::make_shared<HookDevice>(true);
  device->hooks().on_passed_at = [gate] { EXPECT_TRUE(gate->pass()); };
  stuck.device = device;
  expect_bounded(std::move(stuck), *gate, {}, true);
}

TEST(PipelineStop, StopNamesWhatIsStuck) {
  Gate gate;
  SmallRun run(80);
  run.options.debug.stop_timeout = 100ms;
  run.options.order = Order::sequential();
  run.workers(2);
  run.transform->on_begin = [&gate](const Record& record) {
    if (record.index() == 2) {
      EXPECT_TRUE(gate.pass());
    }
  };
  Pipeline pipeline = run.pipeline();
  const OpensAtEnd opens(gate);
  ASSERT_TRUE(eventually([&] { return gate.arrived() == 1; }));
  std::optional<Error> error;  // the other worker may be slow with its own record
  EXPECT_TRUE(eventually([&] {
    error = error_of([&] { pipeline.stop(); });
    return std::string_view(error->what()).find("record 2 ") != std::string_view::npos;
  }));
  EXPECT_EQ(error->code(), ErrorCode::timeout);
  EXPECT_EQ(error->stage(), "stamp");
  gate.open();
  EXPECT_TRUE(eventually([&] {
    try {
      pipeline.stop();
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
}

TEST(PipelineStop, MemoryWaitsForAStreamThoughAnotherOneFailed) {
  Gate gate;
  SmallRun run(80);
  const auto failing = std::make_shared<HookDevice>(false);
  run.options.debug.stop_timeout = 50ms;
  const auto bad = failing->trainer_stream();
  HostStream good;
  std::weak_ptr<Device> device = run.device;
  std::optional<Pipeline> pipeline(run.pipeline());
  Batch batch = pipeline->next(*bad);
  batch.record_stream(good);
  const auto pixels = batch.images().as<std::uint8_t>();
  const std::vector<std::uint8_t> before(pixels.begin(), pixels.end());
  std::atomic<bool> same{false};
  const OpensAtEnd opens(gate);
  good.launch([&gate, &same, before, pixels] {
    EXPECT_TRUE(gate.pass());
    same = std::ranges::equal(pixels, before);
  });
  failing->hooks().on_call = [](DeviceCall call) {
    if (call == DeviceCall::record) throw std::runtime_error("no such stream");
  };
  batch.reset();
  EXPECT_THAT(error_of([&] { (void)pipeline->next(); }).what(), HasSubstr("no such stream"));
  run = SmallRun(1);
  pipeline.reset();
  EXPECT_FALSE(device.expired()) << "its memory is read";
  gate.open();
  good.synchronize();
  EXPECT_TRUE(same);
  EXPECT_TRUE(eventually([&] { return device.expired(); }));
}

TEST(PipelineStop, OtherPipelinesOfTheRuntimeGoOn) {
  SmallRun run(400);
  run.workers(2);
  Pipeline kept = run.pipeline();
  for (int again = 0; again < 10; ++again) {
    SmallRun other = run;
    other.options.seed = static_cast<std::uint64_t>(again);
    Pipeline pipeline = other.pipeline();
    (void)pipeline.next();
  }
  EXPECT_EQ(testing::take(kept).size(), 50U);
}

}  // namespace
}  // namespace millrace
