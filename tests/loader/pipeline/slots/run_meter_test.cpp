// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/run_meter.h"

#include <gtest/gtest.h>

#include <chrono>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using Clock = RunMeter::Clock;

class Meter : public ::testing::Test {
 protected:
  Report report(Clock::time_point now, const WorkerFigures& sample_workers = {}) const {
    Report report;
    meter.fill(report, sample_workers, now);
    return report;
  }

  /// Hands out a batch that was planned before it was asked for.
  void hand_out(Clock::time_point asked, Clock::time_point got) {
    meter.handed_out({asked, got, start, start, start, 1, 8});
  }

  const Clock::time_point start = Clock::now();
  RunMeter meter{nullptr, 0, {}, start};
};

TEST_F(Meter, PartsAWaitIntoStallAndAhead) {
  meter.begin(start, {});
  // 100 ms without a free host slot, 200 making, 300 without a device slot, 400 copying.
  meter.handed_out({.asked = start,
                    .got = start + 1000ms,
                    .planned_at = start + 100ms,
                    .slot_wait_begin = start + 300ms,
                    .slot_wait_end = start + 600ms,
                    .batch = 0,
                    .samples = 8});
  const Report told = report(start + 2s);
  EXPECT_NEAR(told.ahead.total_ms, 400, 1);
  EXPECT_NEAR(told.stall.total_ms, 600, 1);
  EXPECT_EQ(meter.stalled(), 600ms);
  EXPECT_EQ(told.batches, 1U);
  EXPECT_EQ(told.samples, 8U);
  EXPECT_NEAR(told.seconds, 2, 1e-9);
  EXPECT_NEAR(told.first_batch_seconds, 1, 1e-9);
}

TEST_F(Meter, AMicroBatchWaitedForIsStallAndNoWorkOfTheTrainer) {
  meter.begin(start, {});
  meter.waited_for_micro_batch(start + 100ms, start + 150ms, 0);
  hand_out(start + 400ms, start + 400ms);
  const Report told = report(start + 1s);
  EXPECT_NEAR(told.stall.total_ms, 50, 1);
  EXPECT_NEAR(told.stages.back().busy_seconds, 0.350, 0.005);
}

TEST_F(Meter, WaitsThatTimeOutAreStallAndNoWorkOfTheTrainer) {
  meter.begin(start, {});
  hand_out(start, start);
  meter.timed_out(100ms);  // asked for 50 ms after that hand-out
  meter.timed_out(100ms);
  hand_out(start + 250ms, start + 300ms);
  const Report told = report(start + 1s);
  EXPECT_EQ(told.stall.count, 2U) << "one for each batch";
  EXPECT_NEAR(told.stall.total_ms, 250, 1);
  EXPECT_NEAR(told.stages.back().busy_seconds, 0.050, 0.005);
  meter.timed_out(100ms);
  meter.restart(start + 400ms, {});
  hand_out(start + 400ms, start + 500ms);
  EXPECT_NEAR(report(start + 1s).stall.total_ms, 100, 1) << "the report began after the wait";
}

TEST_F(Meter, TellsTheStallsOfTheStart) {
  meter.begin(start, {});
  meter.restart(start, {});  // before the first batch
  hand_out(start, start + 300ms);
  meter.waited_for_micro_batch(start + 300ms, start + 350ms, 0);
  hand_out(start + 400ms, start + 600ms);
  meter.waited_for_micro_batch(start + 600ms, start + 610ms, 1);
  EXPECT_NEAR(report(start + 1s).start_stall_ms, 350, 1);
  EXPECT_NEAR(report(start + 1s).stall.total_ms, 560, 1);
  meter.restart(start + 1s, {});
  hand_out(start + 1s, start + 2s);
  EXPECT_EQ(report(start + 2s).start_stall_ms, 0) << "the run began earlier";
}

TEST_F(Meter, LevelsAreMeansOverTime) {
  meter.begin(start, {});
  meter.note_workers(start, 2);
  meter.note(start, {.free_slots = 4, .ready_batches = 0, .nothing_to_begin = true});
  meter.note(start + 1s, {.free_slots = 0, .ready_batches = 2, .nothing_to_begin = true});
  meter.note_workers(start + 1s, 4);
  const Report told = report(start + 2s);
  EXPECT_NEAR(told.free_slots, 2, 1e-6);
  EXPECT_NEAR(told.ready_batches, 1, 1e-6);
  EXPECT_NEAR(told.active_workers, 3, 1e-6);
}

TEST_F(Meter, RestartsEverythingFromTheFiguresOfThatMoment) {
  meter.begin(start, {.delay = 1s});
  meter.note_workers(start, 2);
  hand_out(start, start + 1s);
  meter.uploaded(start, start + 1s, 0, 100);
  EXPECT_EQ(report(start + 1s).copied_bytes, 100U);
  meter.restart(start + 1s, {.work = {.samples = 8}, .delay = 3s});
  EXPECT_EQ(meter.base().work.samples, 8U);
  const Report told = report(start + 2s, {.delay = 4s});
  EXPECT_EQ(told.batches, 0U);
  EXPECT_EQ(told.copied_bytes, 0U);
  EXPECT_EQ(told.stall.count, 0U);
  EXPECT_NEAR(told.seconds, 1, 1e-9);
  EXPECT_NEAR(told.worker_delay.value_or(-1), 0.5, 1e-6) << "one second of two workers' one";
  EXPECT_EQ(meter.stalled(), 1s) << "this goes on";
}

}  // namespace
}  // namespace millrace
