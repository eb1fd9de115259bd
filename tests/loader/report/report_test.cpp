// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/pipeline.h>
#include <millrace/report.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::SmallRun;

TEST(Report, CountsWhatWasHandedOutMadeReadAndCopied) {
  for (const bool copies : {false, true}) {
    SmallRun run(60, copies);
    Pipeline pipeline = run.pipeline();
    EXPECT_EQ(testing::take(pipeline).size(), 8U);
    const Report report = pipeline.report();
    EXPECT_EQ(report.batches, 8U);
    EXPECT_EQ(report.samples, 60U);
    EXPECT_EQ(report.samples_made, 60U);
    EXPECT_EQ(report.encoded_bytes, 60 * testing::MemoryDataset::record_bytes);
    EXPECT_EQ(report.transform, "stamps");
    EXPECT_EQ(report.decoders, (std::map<std::string, std::uint64_t>{{"even", 30}, {"odd", 30}}));
    if (copies) {
      EXPECT_GE(report.copied_bytes, 60 * run.transform->spec().bytes_per_sample());
    } else {
      EXPECT_EQ(report.copied_bytes, 0U);
    }
    EXPECT_GT(report.seconds, 0);
    EXPECT_GT(report.first_batch_seconds, 0);
    EXPECT_LE(report.first_batch_seconds, report.seconds);
  }
}

TEST(Report, HasTheTimesOfItsStages) {
  const auto make = [](int factor) {
    SmallRun run(64);
    run.workers(2);
    run.dataset->on_read = [=](std::uint64_t) { std::this_thread::sleep_for(1ms * factor); };
    run.transform->on_end = [=](const Record&) {
      std::this_thread::sleep_for(3ms * factor);
      return Status::ok();
    };
    Pipeline pipeline = run.pipeline();
    (void)testing::take(pipeline);
    return pipeline.report();
  };
  // On a busy machine the run or its trainer may start late, and a short stage may take long.
  const Report report = testing::best_of_longer(make, [](const Report& found) {
    return found.worker_utilization > 0.3 && found.stall.total_ms >= 50 &&
           found.stages.at(2).share > found.stages.at(0).share;
  });
  ASSERT_EQ(report.stages.size(), 4U);
  EXPECT_EQ(report.stages[0].name, "read");
  EXPECT_EQ(report.stages[1].name, "stamp");
  EXPECT_EQ(report.stages[2].name, "finish");
  EXPECT_EQ(report.stages[3].name, "trainer");
  EXPECT_GE(report.stages[0].busy_seconds, 0.064);
  EXPECT_GE(report.stages[2].busy_seconds, 3 * 0.064);
  EXPECT_GT(report.stages[2].share, report.stages[0].share);
  double shares = 0;
  for (const StageReport& stage : report.stages) shares += stage.share;
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(report.workers, 2U);
  EXPECT_GT(report.worker_utilization, 0.3);
  EXPECT_LE(report.worker_utilization, 1.001);
  EXPECT_GE(report.stall.total_ms, 50) << "the trainer waited for the data";
  EXPECT_EQ(report.stages[2].each.count, 64U);
  EXPECT_GE(report.stages[2].each.p50_ms, 2.9);
  EXPECT_LE(report.stages[2].each.p99_ms, report.stages[2].each.max_ms * 1.01);
  EXPECT_EQ(report.active_workers, 2);
  for (const StageReport& stage : report.stages) {
    EXPECT_GE(stage.occupancy, 0) << stage.name;
    EXPECT_LE(stage.occupancy, 1.001) << stage.name;
  }
  // A worker runs its stages in turn: busy in one of them or waiting.
  const double workers_busy =
      report.stages[0].busy_seconds + report.stages[1].busy_seconds + report.stages[2].busy_seconds;
  EXPECT_NEAR(workers_busy + report.stages[0].waiting_input_seconds +
                  report.stages[0].waiting_output_seconds,
              2 * report.seconds, 0.01 * report.seconds);
}

TEST(Report, HasTheTimesOfCopiesAndTheTrainer) {
  SmallRun run(80, true);
  const double copy_seconds = 0.01;
  run.device = std::make_shared<HostDevice>(HostDeviceOptions{
      .copies = true,
      .copy_bytes_per_second =
          static_cast<double>(8 * run.transform->spec().bytes_per_sample()) / copy_seconds});
  run.options.slots.micro_batches = 2;
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  while (Batch batch = pipeline.next(stream)) std::this_thread::sleep_for(1ms);
  const auto converted = [&] {
    const Report report = pipeline.report();
    return report.stages.size() == 6 && report.stages[3].each.count == 20 &&
           report.stages[4].each.count == 20;
  };
  ASSERT_TRUE(testing::eventually(converted)) << "two parts of ten batches";
  const Report report = pipeline.report();
  const StageReport& copy = report.stages[3];
  const StageReport& convert = report.stages[4];
  const StageReport& trainer = report.stages[5];
  EXPECT_EQ(copy.name, "copy");
  EXPECT_GE(copy.busy_seconds, 10 * copy_seconds * 0.99) << "as long as the bus takes";
  EXPECT_GE(copy.each.p50_ms, 1e3 * copy_seconds / 2 * 0.98);
  EXPECT_NEAR(copy.busy_seconds + copy.waiting_input_seconds + copy.waiting_output_seconds,
              report.seconds, 0.01 * report.seconds);
  EXPECT_EQ(convert.name, "convert");
  EXPECT_NEAR(convert.busy_seconds + convert.waiting_input_seconds + convert.waiting_output_seconds,
              report.seconds, 0.01 * report.seconds);
  EXPECT_GE(convert.waiting_input_seconds, copy.busy_seconds / 2) << "it waits for the bus";
  EXPECT_EQ(trainer.name, "trainer");
  EXPECT_EQ(trainer.each.count, 10U) << "between two calls, and before the first";
  EXPECT_GE(trainer.busy_seconds, 9 * 0.001);
  EXPECT_NEAR(trainer.waiting_input_seconds, report.stall.total_ms / 1e3, 1e-9);
  EXPECT_NEAR(trainer.waiting_output_seconds, report.ahead.total_ms / 1e3, 1e-9);
}

TEST(Report, CountsBatchesThatWaitForTheTrainer) {
  SmallRun run(800);
  run.options.slots.prefetch = 4;
  Pipeline pipeline = run.pipeline();
  ASSERT_TRUE(testing::eventually([&] { return pipeline.report().samples_made == 32; }));
  // The last batch is ready a little later.
  Report full;
  EXPECT_TRUE(testing::eventually([&] {
    pipeline.restart_report();
    std::this_thread::sleep_for(20ms);
    full = pipeline.report();
    return full.ready_batches > 3.5 && full.stages.at(0).waiting_input_seconds < 1e-3;
  }));
  EXPECT_NEAR(full.ready_batches, 4, 0.5);
  EXPECT_EQ(full.free_slots, 0);
  EXPECT_GT(full.stages[0].waiting_output_seconds, 0) << "the workers have nowhere to put a sample";
  EXPECT_NEAR(full.stages[0].waiting_input_seconds, 0, 1e-3);
}

TEST(Report, HasPlausiblePercentiles) {
  const auto make = [](int factor) {
    SmallRun run(8 * 100);
    run.options.order = Order::sequential();
    run.options.slots.prefetch = 1;
    run.workers(1);
    // Every tenth batch is late.
    run.transform->on_begin = [factor](const Record& record) {
      if (record.index() % 80 == 0) std::this_thread::sleep_for(20ms * factor);
    };
    Pipeline pipeline = run.pipeline();
    while (pipeline.next()) continue;
    return pipeline.report();
  };
  // On a busy machine the trainer may be late, and waits less then.
  const Report report = testing::best_of_longer(make, [](const Report& found) {
    return found.stall.max_ms >= 19 && found.stall.p95_ms >= 15 && found.stall.total_ms >= 180;
  });
  const Durations& stall = report.stall;
  EXPECT_EQ(stall.count, 100U);
  EXPECT_LE(stall.p50_ms, stall.p95_ms);
  EXPECT_LE(stall.p95_ms, stall.p99_ms);
  EXPECT_LE(stall.p99_ms, stall.max_ms * 1.01);
  EXPECT_GE(stall.max_ms, 19);
  EXPECT_GE(stall.p95_ms, 15) << "a tenth of the calls waited 20 ms";
  EXPECT_GE(stall.total_ms, 180);
  EXPECT_LE(stall.total_ms, report.seconds * 1000);
}

TEST(Report, StartsAfreshWhenAsked) {
  SmallRun run(80);
  Pipeline pipeline = run.pipeline();
  (void)testing::take(pipeline, 4);
  // 4 handed out, 4 ahead
  ASSERT_TRUE(testing::eventually([&] { return pipeline.report().samples_made == 64; }));
  std::this_thread::sleep_for(30ms);
  const Report before = pipeline.report();
  const testing::Stopwatch since_restart;
  pipeline.restart_report();
  const Report after = pipeline.report();
  const double max_seconds = since_restart.seconds();
  EXPECT_EQ(after.batches, 0U);
  EXPECT_EQ(after.samples, 0U);
  EXPECT_EQ(after.samples_made, 0U);
  EXPECT_EQ(after.encoded_bytes, 0U);
  EXPECT_TRUE(after.decoders.empty());
  EXPECT_EQ(after.transform, before.transform);
  EXPECT_EQ(after.stall.count, 0U);
  EXPECT_EQ(after.ahead.total_ms, 0);
  for (const StageReport& stage : after.stages) {
    EXPECT_EQ(stage.busy_seconds, 0);
    EXPECT_EQ(stage.each.count, 0U);
  }
  EXPECT_LE(after.seconds, max_seconds);
  EXPECT_EQ(after.memory.pinned_bytes, before.memory.pinned_bytes);
  (void)testing::take(pipeline);
  EXPECT_EQ(pipeline.report().batches, 6U);
  EXPECT_EQ(pipeline.report().samples, 48U);
}

TEST(Report, EachSampleIsInOneOfThoseThatThreadsTake) {
  constexpr std::uint64_t samples = 8 * 400;
  SmallRun run(samples);
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  std::atomic<std::uint64_t> counted{0};
  const auto count = [&] {
    const std::uint64_t made = pipeline.take_report().samples_made;
    EXPECT_LE(made, samples) << "it begins behind its end";
    counted += made;
  };
  {
    std::vector<std::jthread> takers;
    for (int taker = 0; taker < 3; ++taker)
      takers.emplace_back([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) count();
      });
    EXPECT_EQ(testing::take(pipeline).size(), 400U);
  }
  EXPECT_TRUE(testing::eventually([&] {
    count();
    return counted == samples;
  }));
}

TEST(Report, MemoryIsWhatWasAllocated) {
  for (const bool copies : {false, true}) {
    SmallRun run(800, copies);
    const auto device = std::make_shared<testing::HookDevice>(copies);
    run.device = device;
    run.options.slots.prefetch = 3;
    run.options.slots.micro_batches = 2;
    Pipeline pipeline = run.pipeline();
    for (int batches = 0; batches < 3; ++batches) {
      const Report report = pipeline.report();
      EXPECT_EQ(report.memory.pinned_bytes, device->hooks().host_bytes);
      EXPECT_EQ(report.memory.device_bytes, device->hooks().device_bytes);
      EXPECT_GE(report.memory.pinned_bytes, 3 * 8 * run.transform->spec().bytes_per_sample());
      (void)pipeline.next();
    }
  }
}

TEST(Report, SaysWhetherWorkersAreBound) {
  SmallRun run(80);
  run.options.runtime = make_runtime({.workers = 2, .numa = Numa::off});
  EXPECT_FALSE(run.pipeline().report().workers_bound);
}

TEST(Report, HasTheWarningsOfItsRuntime) {
  SmallRun run(80);
  const Topology machine = synthetic_topology("pack:2 [numa] core:1 pu:1");
  run.options.runtime = make_runtime({.workers = 3, .topology = machine});
  const std::vector<std::string> warnings = run.pipeline().report().warnings;
  EXPECT_THAT(warnings, ::testing::Contains("oversubscribed: 3 workers on 2 processors"));
  EXPECT_THAT(warnings, ::testing::Contains(::testing::HasSubstr("node 1 are not bound")));
}

TEST(Report, KnowsWhatIsLeftFreeForLaunches) {
  SmallRun run(80);
  run.options.runtime = make_runtime(
      {.launch_cores = 1, .topology = synthetic_topology("pack:1 [numa] core:3 pu:1")});
  const Report report = run.pipeline().report();
  EXPECT_EQ(report.cores, 3U);
  EXPECT_EQ(report.workers, 2U);
  EXPECT_EQ(report.launch_cores, 1U);
}

}  // namespace
}  // namespace millrace
