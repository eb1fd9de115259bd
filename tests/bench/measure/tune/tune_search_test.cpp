// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_search.h"

#include <gmock/gmock.h>
#include <millrace/error.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "bench/measure/tune/made_up_machine.h"
#include "measure/tune/tune_output.h"
#include "measure/tune/tune_statistics.h"

namespace millrace::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(TuneSearch, TakesTheFewestWorkersThatFeedTheStep) {
  for (const unsigned needed : {1u, 2u, 3u, 5u, 6u, 7u, 8u}) {
    FakeMachine machine;
    machine.goal.step_ms = step_for(1000.0 * needed / 1.03);
    const TuneFindings found = machine.tune();
    EXPECT_EQ(found.outcome, TuneOutcome::feeds_step) << needed;
    EXPECT_EQ(found.chosen.workers, needed);
    EXPECT_EQ(found.points[found.chosen_point].setting, found.chosen);
    EXPECT_EQ(found.points[found.chosen_point].feeds, Feeds::yes);
    EXPECT_GE(found.points[found.chosen_point].runs.size(), few_runs);
    EXPECT_THAT(found.not_measured, IsEmpty());
    EXPECT_THAT(found.verdict, HasSubstr("feeds the step"));
    // It stops there: it does not try more workers than the next power of two.
    for (const TunePoint& point : found.points)
      EXPECT_LE(point.setting.workers, std::bit_ceil(needed));
    EXPECT_LE(machine.now, machine.goal.budget_seconds);
  }
}

TEST(TuneSearch, AStepThatTwoWorkersJustFeedNeverTakesMore) {
  // The noise is as large as the margin.
  for (unsigned seed = 0; seed < 50; ++seed) {
    FakeMachine machine;
    machine.seed = seed;
    machine.noise = 0.03;
    machine.rate = [](const TuneSetting& setting) { return saturating(setting.workers, 2); };
    machine.goal.max_workers = 4;
    machine.goal.step_ms = step_for(2000 / 1.03);
    EXPECT_LE(machine.tune().chosen.workers, 2u) << seed;
  }
}

TEST(TuneSearch, OtherProgramsDoNotMakeItTakeMore) {
  int right = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    FakeMachine machine;
    machine.seed = seed;
    machine.disturbed = 0.3;
    machine.goal.step_ms = step_for(2000 / 1.05);
    const TuneFindings found = machine.tune();
    right += found.chosen.workers == 2 && found.outcome == TuneOutcome::feeds_step ? 1 : 0;
  }
  EXPECT_GE(right, 49);
}

TEST(TuneSearch, OneLuckyRunIsNotEnough) {
  FakeMachine machine;
  machine.goal.max_workers = 2;
  machine.noise = 0;
  machine.goal.step_ms = step_for(1000);
  // One worker feeds the step only in every third run.
  machine.rate = [&](const TuneSetting& setting) {
    return setting.workers == 1 && machine.runs % 3 != 1 ? 900.0 : 1100.0;
  };
  EXPECT_EQ(machine.tune().chosen.workers, 2u);
}

TEST(TuneSearch, WhereNothingFeedsTheStepItIsTheKnee) {
  FakeMachine machine;
  machine.rate = [](const TuneSetting& setting) { return saturating(setting.workers, 3); };
  machine.goal.step_ms = step_for(10000);
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.outcome, TuneOutcome::nothing_feeds);
  EXPECT_EQ(found.chosen.workers, 3u);
  EXPECT_THAT(found.verdict, HasSubstr("nothing feeds the step"));
}

TEST(TuneSearch, WithoutAStepItIsTheKneeOfAPlateau) {
  for (const unsigned plateau : {1u, 2u, 5u, 8u, 13u, 16u}) {
    FakeMachine machine;
    machine.goal.max_workers = 16;
    machine.rate = [&](const TuneSetting& setting) { return saturating(setting.workers, plateau); };
    const TuneFindings found = machine.tune();
    EXPECT_EQ(found.outcome, TuneOutcome::no_step);
    EXPECT_EQ(found.chosen.workers, plateau);
    EXPECT_EQ(found.points[found.chosen_point].feeds, Feeds::no_step);
  }
}

TEST(TuneSearch, OnARetrogradeCurveItStaysBelowThePeak) {
  const UslFit law{.lambda = 1000, .sigma = 0.02, .kappa = 0.004};  // peaks at 15.7
  FakeMachine machine;
  machine.goal.max_workers = 64;
  machine.rate = [&](const TuneSetting& setting) { return law.rate(setting.workers); };
  const TuneFindings found = machine.tune();
  EXPECT_LE(found.chosen.workers, 16u);
  EXPECT_GE(law.rate(found.chosen.workers), 0.93 * law.rate(16));
  EXPECT_NEAR(found.fit.peak(), law.peak(), 2);
  EXPECT_NEAR(found.fit.lambda, 1000, 20);
  EXPECT_EQ(found.knee, usl_knee(found.fit, 64, 0.95));
}

TEST(TuneSearch, ACheaperSettingWithinNoiseIsTaken) {
  int dearer = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    FakeMachine machine;
    machine.seed = seed;
    machine.noise = 0.05;
    machine.goal.max_workers = 4;
    // A gain of 1% for each further worker: real, but too small to count.
    machine.rate = [](const TuneSetting& setting) { return 1000 + 10.0 * setting.workers; };
    dearer += machine.tune().chosen.workers > 1 ? 1 : 0;
  }
  EXPECT_LE(dearer, 1);
}

TEST(TuneSearch, ANoisyMachineStillSeesALargeGain) {
  int right = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    FakeMachine machine;
    machine.seed = seed;
    machine.noise = 0.1;
    machine.goal.max_workers = 2;
    right += machine.tune().chosen.workers == 2 ? 1 : 0;
  }
  EXPECT_GE(right, 29);
}

TEST(TuneSearch, PrefetchIsTheSmallestWithNoLoss) {
  for (const double step_ms : {0.0, step_for(1940)}) {
    for (const std::size_t enough : {2u, 3u, 5u, 8u}) {
      FakeMachine machine;
      machine.goal.max_workers = 2;
      machine.goal.step_ms = step_ms;
      machine.rate = [&](const TuneSetting& setting) {
        return 1000.0 * setting.workers *
               (setting.prefetch >= enough ? 1
                                           : 0.8 + 0.01 * static_cast<double>(setting.prefetch));
      };
      const TuneFindings found = machine.tune();
      EXPECT_EQ(found.chosen.prefetch, enough) << step_ms;
      EXPECT_EQ(found.chosen.workers, 2u);
    }
  }
}

TEST(TuneSearch, MicroBatchesOnlyWhereTheyGain) {
  FakeMachine nothing_gained;
  EXPECT_EQ(nothing_gained.tune().chosen.micro_batches, 1u);

  FakeMachine faster;
  faster.rate = [](const TuneSetting& setting) {
    return 1000.0 * setting.workers *
           (setting.micro_batches >= 4   ? 1.2
            : setting.micro_batches == 2 ? 1.1
                                         : 1);
  };
  const TuneFindings found = faster.tune();
  EXPECT_EQ(found.chosen.micro_batches, 4u);
  EXPECT_THAT(found.why, HasSubstr("4 micro-batches gains throughput"));

  FakeMachine earlier;
  earlier.goal.step_ms = step_for(1900);
  earlier.first_batch = [](const TuneSetting& setting) {
    return setting.micro_batches > 1 ? 30.0 : 60.0;
  };
  EXPECT_EQ(earlier.tune().chosen.micro_batches, 2u);
}

TEST(TuneSearch, MicroBatchesRarelyGainByChance) {
  int more = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    FakeMachine machine;
    machine.seed = seed;
    machine.noise = 0.05;
    machine.goal.max_workers = 2;
    more += machine.tune().chosen.micro_batches > 1 ? 1 : 0;
  }
  EXPECT_LE(more, 4);
}

TEST(TuneSearch, BatchSizeStaysUnlessAskedFor) {
  FakeMachine machine;
  machine.goal.batch_size = 48;
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.chosen.batch_size, 48u);
  EXPECT_EQ(found.phases.size(), 3u);
}

TEST(TuneSearch, BatchSizeIsTheLargestWithinThePercentile) {
  FakeMachine machine;
  machine.goal.max_workers = 2;
  machine.goal.p99_ms = 110;  // 220 samples at 2000 samples/s
  TuneFindings found = machine.tune();
  EXPECT_GE(found.chosen.batch_size, 190u);
  EXPECT_LE(found.chosen.batch_size, 220u);
  EXPECT_LE(found.points[found.chosen_point].summary.batch_p99_ms, 110);

  FakeMachine tight;
  tight.goal.max_workers = 2;
  tight.goal.p99_ms = 10;
  found = tight.tune();
  EXPECT_GE(found.chosen.batch_size, 17u);
  EXPECT_LE(found.chosen.batch_size, 20u);
}

TEST(TuneSearch, BatchSizeKeepsWithinTheMemory) {
  FakeMachine machine;
  machine.goal.memory_bytes = 100'000'000;
  const TuneFindings found = machine.tune();
  const TunePoint& chosen = found.points[found.chosen_point];
  EXPECT_LE(chosen.summary.memory_bytes, 100'000'000u);
  EXPECT_GE(chosen.summary.memory_bytes, 80'000'000u);
  EXPECT_EQ(found.phases.size(), 4u);
}

TEST(TuneSearch, WarnsWhereTheWorkersMemoryIsUnknown) {
  for (const bool tells : {true, false}) {
    FakeMachine machine;
    machine.tells_scratch = tells;
    const TuneFindings found = machine.tune();
    const auto warns = Contains(HasSubstr("memory of the workers is unknown"));
    if (tells) {
      EXPECT_THAT(found.warnings, Not(warns));
    } else {
      EXPECT_THAT(found.warnings, warns);
    }
    TuneResult result;
    result.findings = found;
    const auto json = nlohmann::json::parse(to_json(result));
    EXPECT_EQ(json.at("points")[0].at("runs")[0].at("scratch_bytes").is_null(), !tells);
  }
}

TEST(TuneSearch, SaysWhereNoBatchSizeFits) {
  FakeMachine machine;
  machine.goal.memory_bytes = 1000;
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.outcome, TuneOutcome::nothing_fits);
  EXPECT_THAT(found.verdict, HasSubstr("no batch size keeps within"));
}

TEST(TuneSearch, BatchSizeWithoutLimitsGrowsWhileThroughputDoes) {
  FakeMachine machine;
  machine.goal.tune_batch_size = true;
  machine.goal.batch_size = 16;
  machine.rate = [](const TuneSetting& setting) {
    return 1000.0 * setting.workers *
           std::min<double>(static_cast<double>(setting.batch_size), 64) / 64;
  };
  EXPECT_EQ(machine.tune().chosen.batch_size, 64u);
}

TEST(TuneSearch, ABigMachineStaysWithinTheBudget) {
  FakeMachine machine;
  machine.goal.max_workers = 128;
  machine.rate = [](const TuneSetting& setting) { return saturating(setting.workers, 45); };
  const TuneFindings found = machine.tune();
  EXPECT_LE(machine.now, machine.goal.budget_seconds);
  EXPECT_GE(found.chosen.workers, 43u);
  EXPECT_LE(found.chosen.workers, 48u);

  FakeMachine with_step = machine;
  with_step.now = 0;
  with_step.goal.step_ms = step_for(21'000);
  const TuneFindings fed = with_step.tune();
  EXPECT_LE(with_step.now, with_step.goal.budget_seconds);
  EXPECT_GE(fed.chosen.workers, 21u);
  EXPECT_LE(fed.chosen.workers, 23u);
}

TEST(TuneSearch, NothingIsSureByFewerThanTwentyBatches) {
  // Three runs of five batches would agree.
  FakeMachine machine;
  machine.noise = 0;
  machine.goal.max_workers = 2;
  machine.goal.step_ms = step_for(950);
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.outcome, TuneOutcome::feeds_step);
  for (const TunePoint& point : found.points) {
    if (point.feeds != Feeds::unsure) {
      EXPECT_GE(point.summary.batches, fewest_judged_batches);
    }
  }

  FakeMachine slow;
  slow.noise = 0;
  slow.goal.max_workers = 1;
  slow.goal.budget_seconds = 1;
  slow.goal.step_ms = step_for(950);
  EXPECT_EQ(slow.tune().outcome, TuneOutcome::nothing_feeds);
}

TEST(TuneSearch, UsesTheBudget) {
  for (const double step_ms : {0.0, step_for(950), step_for(10000)}) {
    FakeMachine machine;
    machine.goal.max_workers = 4;
    machine.goal.step_ms = step_ms;
    const TuneFindings found = machine.tune();
    EXPECT_LE(machine.now, machine.goal.budget_seconds) << step_ms;
    EXPECT_GE(machine.now, 0.95 * machine.goal.budget_seconds) << step_ms;
    EXPECT_GE(found.points[found.chosen_point].runs.size(), 20u) << step_ms;
  }
}

TEST(TuneSearch, SaysWhatTheBudgetDidNotAllow) {
  FakeMachine machine;
  machine.overhead_seconds = 20;
  const TuneFindings found = machine.tune();
  EXPECT_LE(machine.now, machine.goal.budget_seconds);
  ASSERT_FALSE(found.not_measured.empty());
  EXPECT_THAT(found.not_measured[0], HasSubstr("workers"));
  EXPECT_FALSE(found.points[found.chosen_point].runs.empty());

  FakeMachine hopeless;
  hopeless.overhead_seconds = 1000;
  hopeless.goal.step_ms = 10;
  const TuneFindings one_run = hopeless.tune();
  EXPECT_EQ(hopeless.runs, 1u);
  EXPECT_EQ(one_run.chosen.workers, 1u);
  EXPECT_EQ(one_run.not_measured.size(), 3u);
}

TEST(TuneSearch, RunsGetLongerWithTheBudget) {
  FakeMachine small;
  small.goal.budget_seconds = 10;
  FakeMachine large;
  large.goal.budget_seconds = 60;
  EXPECT_LT(small.tune().run_seconds, large.tune().run_seconds);
}

TEST(TuneSearch, WhatItMeasuresPassesOn) {
  const TuneProbe broken{.measure = [](const TuneSetting&, double) -> TuneRun {
                           throw Error(ErrorCode::corrupt, "record 3");
                         },
                         .elapsed = [] { return 0.0; }};
  EXPECT_THROW(search_settings({}, broken), Error);
}

}  // namespace
}  // namespace millrace::cli
