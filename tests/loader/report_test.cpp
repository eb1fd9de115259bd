// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/pipeline.h>
#include <millrace/report.h>

#include <thread>

#include "fake_device.h"
#include "small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::SmallRun;

/// Ten seconds in which two workers were busy for `utilization` of the time, `read` of it reading.
Report made_up(double utilization, double read, double stall_seconds, double ahead_seconds) {
  Report report;
  report.seconds = 10;
  report.batches = 1000;
  report.samples = 64'000;
  report.workers = 2;
  report.worker_utilization = utilization;
  const double busy = utilization * 20;
  report.stages = {{"read", busy * read, read},
                   {"decode", busy * (1 - read) * 0.7, (1 - read) * 0.7},
                   {"augment", busy * (1 - read) * 0.3, (1 - read) * 0.3}};
  report.stall.count = 1000;
  report.stall.total_ms = stall_seconds * 1000;
  report.ahead.count = 1000;
  report.ahead.total_ms = ahead_seconds * 1000;
  return report;
}

void expect_verdict(const Verdict& verdict, Bound bound, const std::string& stage) {
  EXPECT_EQ(verdict.bound, bound) << verdict.text;
  EXPECT_EQ(verdict.stage, stage);
  EXPECT_THAT(verdict.text, HasSubstr(stage));
}

TEST(Verdict, TheStepBoundsAFedDevice) {
  expect_verdict(judge(made_up(0.8, 0.1, 0.01, 8), 0.002), Bound::step, "step");
  expect_verdict(judge(made_up(0.99, 0.1, 0.01, 1), 0.004), Bound::step, "step");
  EXPECT_THAT(judge(made_up(0.8, 0.1, 0, 8), 0.004).text, HasSubstr("0.4%")) << "the number behind it";
}

TEST(Verdict, BusyWorkersBoundTheRunByTheirLongestStage) {
  expect_verdict(judge(made_up(0.98, 0.1, 4, 0), 0.4), Bound::transform, "decode");
  expect_verdict(judge(made_up(0.98, 0.8, 4, 0), 0.4), Bound::read, "read");
  EXPECT_THAT(judge(made_up(0.98, 0.1, 4, 0), 0.4).text, HasSubstr("98.0%"));
}

TEST(Verdict, WithoutAStepTheLoaderBoundsTheRun) {
  expect_verdict(judge(made_up(0.97, 0.1, 9, 0), -1), Bound::transform, "decode");
  expect_verdict(judge(made_up(0.97, 0.9, 9, 0), -1), Bound::read, "read");
}

TEST(Verdict, SlotsThatWaitWhileWorkersAndDeviceAreIdleMeanCopying) {
  expect_verdict(judge(made_up(0.3, 0.1, 0.2, 5), 0.5), Bound::copy, "copy");
}

TEST(Verdict, ATrainerThatComesLateBoundsTheRun) {
  expect_verdict(judge(made_up(0.3, 0.1, 0.01, 0.01), 0.5), Bound::trainer, "trainer");
}

TEST(Verdict, AnEmptyReportIsNoTrouble) {
  EXPECT_FALSE(judge(Report(), -1).text.empty());
  EXPECT_FALSE(judge(Report(), 0).text.empty());
  EXPECT_FALSE(judge(Report(), 1).text.empty());
}

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
  SmallRun run(64);
  run.workers(2);
  run.dataset->on_read = [](std::uint64_t) { std::this_thread::sleep_for(1ms); };
  run.transform->on_end = [](const Record&) {
    std::this_thread::sleep_for(3ms);
    return Status::ok();
  };
  Pipeline pipeline = run.pipeline();
  (void)testing::take(pipeline);
  const Report report = pipeline.report();
  ASSERT_EQ(report.stages.size(), 3U);
  EXPECT_EQ(report.stages[0].name, "read");
  EXPECT_EQ(report.stages[1].name, "stamp");
  EXPECT_EQ(report.stages[2].name, "finish");
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
}

TEST(Report, HasPlausiblePercentiles) {
  SmallRun run(8 * 100);
  run.options.shuffle = false;
  run.options.prefetch = 1;
  run.workers(1);
  // Each tenth batch is late.
  run.transform->on_begin = [](const Record& record) {
    if (record.index() % 80 == 0) std::this_thread::sleep_for(20ms);
  };
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  const Durations stall = pipeline.report().stall;
  EXPECT_EQ(stall.count, 100U);
  EXPECT_LE(stall.p50_ms, stall.p95_ms);
  EXPECT_LE(stall.p95_ms, stall.p99_ms);
  EXPECT_LE(stall.p99_ms, stall.max_ms * 1.01);
  EXPECT_GE(stall.max_ms, 19);
  EXPECT_GE(stall.p95_ms, 15) << "a tenth of the calls waited 20 ms";
  EXPECT_GE(stall.total_ms, 180);
  EXPECT_LE(stall.total_ms, pipeline.report().seconds * 1000);
}

TEST(Report, StartsAfreshWhenAsked) {
  SmallRun run(80);
  Pipeline pipeline = run.pipeline();
  (void)testing::take(pipeline, 4);
  ASSERT_TRUE(testing::eventually([&] { return run.transform->made() == 64; }));  // 4 handed out, 4 ahead
  std::this_thread::sleep_for(30ms);
  const Report before = pipeline.report();
  pipeline.restart_report();
  const Report after = pipeline.report();
  EXPECT_EQ(after.batches, 0U);
  EXPECT_EQ(after.samples, 0U);
  EXPECT_EQ(after.samples_made, 0U);
  EXPECT_EQ(after.encoded_bytes, 0U);
  EXPECT_EQ(after.stall.count, 0U);
  EXPECT_EQ(after.ahead.total_ms, 0);
  for (const StageReport& stage : after.stages) EXPECT_EQ(stage.busy_seconds, 0);
  EXPECT_LT(after.seconds, before.seconds);
  EXPECT_EQ(after.memory.pinned_bytes, before.memory.pinned_bytes);
  (void)testing::take(pipeline);
  EXPECT_EQ(pipeline.report().batches, 6U);
  EXPECT_EQ(pipeline.report().samples, 48U);
}

TEST(Report, MemoryIsWhatWasAllocated) {
  for (const bool copies : {false, true}) {
    SmallRun run(800, copies);
    const auto device = std::make_shared<testing::HookDevice>(copies);
    run.device = device;
    run.options.prefetch = 3;
    run.options.micro_batches = 2;
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
  run.options.runtime = make_runtime({.workers = 2, .bind = false});
  EXPECT_FALSE(run.pipeline().report().workers_bound);
}

}  // namespace
}  // namespace millrace
