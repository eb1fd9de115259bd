// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace millrace::cli {
namespace {

TuneRun run_with(double rate, double idle, double disturbed = 0) {
  TuneRun run;
  run.batches = 20;
  run.samples_per_second = rate;
  run.device_idle = idle;
  run.disturbed = disturbed;
  run.batch_ms = {rate / 100, rate / 50};
  return run;
}

TEST(TuneStatistics, SummarisesRuns) {
  const std::vector<TuneRun> runs = {run_with(100, 0.01), run_with(110, 0.02), run_with(120, 0.03)};
  const TuneSummary summary = summarise(runs);
  EXPECT_EQ(summary.runs, 3u);
  EXPECT_DOUBLE_EQ(summary.samples_per_second.mean, 110);
  EXPECT_DOUBLE_EQ(summary.samples_per_second.sd, 10);
  EXPECT_DOUBLE_EQ(summary.batch_p50_ms, 1.2);
  EXPECT_DOUBLE_EQ(summary.batch_p99_ms, 2.4);
  EXPECT_NEAR(summary.device_idle->mean, 0.02, 1e-12);
  EXPECT_NEAR(summary.idle_high, 0.02 + 2.91998558 * 0.01 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(summary.idle_low, 0.02 - 2.91998558 * 0.01 / std::sqrt(3), 1e-9);
}

TEST(TuneStatistics, DisturbedRunsAreSetAsideWhileEnoughAreLeft) {
  std::vector<TuneRun> runs = {run_with(100, 0), run_with(100, 0), run_with(50, 0.5, 0.4)};
  EXPECT_EQ(summarise(runs).set_aside, 0u);
  runs.push_back(run_with(100, 0));
  const TuneSummary summary = summarise(runs);
  EXPECT_EQ(summary.set_aside, 1u);
  EXPECT_EQ(summary.runs, 3u);
  EXPECT_DOUBLE_EQ(summary.samples_per_second.mean, 100);
  EXPECT_EQ(feeds_step(summary), Feeds::yes);
}

TEST(TuneStatistics, FeedingTakesConfidence) {
  const auto of = [](std::vector<double> idles) {
    std::vector<TuneRun> runs;
    for (const double idle : idles) runs.push_back(run_with(100, idle));
    return feeds_step(summarise(runs));
  };
  EXPECT_EQ(of({0}), Feeds::unsure);
  EXPECT_EQ(of({0, 0}), Feeds::unsure);
  EXPECT_EQ(of({0, 0, 0}), Feeds::yes);
  EXPECT_EQ(of({0, 0, 0.03}), Feeds::unsure);
  EXPECT_EQ(of({0.5, 0.51}), Feeds::no);
  const std::vector<TuneRun> disturbed(9, run_with(100, 0.5, 0.4));
  EXPECT_EQ(feeds_step(summarise(disturbed)), Feeds::unsure);
  EXPECT_EQ(feeds_step(summarise(std::vector<TuneRun>(10, run_with(100, 0.5, 0.4)))), Feeds::no);
  EXPECT_EQ(of({0.02, 0.5}), Feeds::unsure);
  EXPECT_EQ(feeds_step({}), Feeds::no_step);
}

std::vector<TuneRun> with_batches(std::vector<TuneRun> runs, std::uint64_t batches) {
  for (TuneRun& run : runs) run.batches = batches;
  return runs;
}

std::vector<TuneRun> rounds_of(std::vector<double> rates) {
  std::vector<TuneRun> runs;
  for (const double rate : rates) {
    runs.push_back(run_with(rate, 0.5));
    runs.back().round = runs.size();
  }
  return runs;
}

Gain gain(std::vector<double> first, std::vector<double> second) {
  return throughput_gain(rounds_of(first), rounds_of(second));
}

TEST(TuneStatistics, HigherMeansBeyondNoise) {
  EXPECT_GT(gain({109, 110, 111}, {100, 100, 100}).low(), min_loss);
  EXPECT_LE(gain({100, 110, 120}, {110, 100, 90}).low(), min_loss);
  EXPECT_GT(gain({100, 110, 120}, {110, 100, 90}).high(), tolerance);
  EXPECT_LE(gain({101, 101, 101}, {100, 100, 100}).low(), min_loss);
  EXPECT_LE(gain({101, 101, 101}, {100, 100, 100}).high(), tolerance);
  EXPECT_LE(gain({110}, {100, 100, 100}).low(), min_loss);
  EXPECT_GT(gain({}, {100, 100, 100}).high(), tolerance);
}

TEST(TuneStatistics, FewerThanTwentyBatchesSayNothing) {
  const std::vector<TuneRun> fed(3, run_with(100, 0));
  EXPECT_EQ(feeds_step(summarise(with_batches(fed, 6))), Feeds::unsure);
  EXPECT_EQ(feeds_step(summarise(with_batches(fed, 7))), Feeds::yes);
  const std::vector<TuneRun> idle(3, run_with(100, 0.5));
  EXPECT_EQ(feeds_step(summarise(with_batches(idle, 6))), Feeds::unsure);
  EXPECT_EQ(feeds_step(summarise(with_batches(idle, 7))), Feeds::no);

  const std::vector<TuneRun> fast = with_batches(rounds_of({109, 110, 111}), 7);
  EXPECT_LE(throughput_gain(fast, with_batches(rounds_of({100, 100, 100}), 6)).low(), min_loss);
  EXPECT_GT(throughput_gain(fast, with_batches(rounds_of({100, 100, 100}), 7)).low(), min_loss);
}

TEST(TuneStatistics, GainsAreWithinARound) {
  // Both get slower from round to round, which must not change the gain.
  const Gain steady = gain({110, 55, 27.5}, {100, 50, 25});
  EXPECT_NEAR(steady.mean, 0.1, 1e-12);
  EXPECT_NEAR(steady.standard_error, 2.5 * std::sqrt(7.0 / 3) / std::sqrt(3) / (175.0 / 3), 1e-9);
  // Only rounds in which both ran count, and among these the undisturbed ones if there are enough.
  std::vector<TuneRun> first = rounds_of({1000, 110, 110, 110, 50});
  first[4].disturbed = 0.5;
  std::vector<TuneRun> second = rounds_of({1, 100, 100, 100, 100});
  second.erase(second.begin());
  const Gain quiet = throughput_gain(first, second);
  EXPECT_EQ(quiet.rounds, 3u);
  EXPECT_NEAR(quiet.mean, 0.1, 1e-12);
  EXPECT_EQ(quiet.standard_error, 0);
}

TEST(TuneStatistics, RoundsInWhichBothFeedTheStepSayNothingOfThroughput) {
  std::vector<TuneRun> runs = rounds_of({100, 100, 100});
  EXPECT_EQ(throughput_gain(runs, runs).high(), 0);
  for (TuneRun& run : runs) run.device_idle = 0;
  EXPECT_GT(throughput_gain(runs, runs).high(), tolerance);
}

TEST(TuneStatistics, StudentsQuantiles) {
  EXPECT_NEAR(student_t(1, 0.95), 6.313751515, 1e-8);
  EXPECT_NEAR(student_t(2.9, 0.95), 2.919985580, 1e-8);
  EXPECT_NEAR(student_t(30, 0.95), 1.697260887, 1e-8);
  EXPECT_NEAR(student_t(1e9, 0.95), 1.644853629, 1e-8);
  EXPECT_NEAR(student_t(0, 0.95), 6.313751515, 1e-8);
  EXPECT_NEAR(student_t(4, 0.99), 3.746947388, 1e-8);
  EXPECT_NEAR(student_t(30, 0.99), 2.457261542, 1e-8);
}

}  // namespace
}  // namespace millrace::cli
