// SPDX-License-Identifier: Apache-2.0
#include "report/verdict.h"

#include <gmock/gmock.h>

#include "loader/report/made_up_report.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using MadeUp = testing::MadeUpReport;

void expect_verdict(const Verdict& verdict, Bound bound, const std::string& stage,
                    const std::string& number) {
  EXPECT_EQ(verdict.bound, bound) << verdict.text;
  EXPECT_EQ(verdict.stage, stage) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr(number));
  EXPECT_FALSE(verdict.advice.empty());
}

TEST(Verdict, AConversionThatIsBusyAllTheTimeBoundsTheRun) {
  const MadeUp run{.utilization = 0.3, .copy = 0.2, .convert = 0.95, .stall = 0, .ahead = 0.6};
  expect_verdict(judge(run.report(), 0.3), Bound::convert, "convert", "95.0%");
  expect_verdict(judge(run.report()), Bound::convert, "convert", "95.0%");
  expect_verdict(judge(run.report(), 0.004), Bound::step, "step", "0.4%");
  expect_verdict(judge(MadeUp{.utilization = 0.3, .copy = 0.99, .convert = 0.9}.report(), 0.3),
                 Bound::copy, "copy", "99.0%");
  EXPECT_EQ(judge(MadeUp{.convert = 0.8}.report(), 0.4).next_bound, "convert");
}

TEST(Verdict, TheStepBoundsAFedDevice) {
  expect_verdict(judge(MadeUp{.utilization = 0.3, .stall = 0, .ahead = 0.6}.report(), 0.004),
                 Bound::step, "step", "0.4%");
  expect_verdict(judge(MadeUp{.stall = 0.01}.report(), 0.004), Bound::step, "step", "0.4%");
  EXPECT_NEAR(judge(MadeUp{}.report(), 0.004).share, 0.996, 1e-9);
}

TEST(Verdict, WithoutTheDevicesIdleTimeATrainerThatIsAheadMeansTheStep) {
  expect_verdict(judge(MadeUp{.utilization = 0.3, .stall = 0, .ahead = 0.6}.report()), Bound::step,
                 "step", "60.0%");
}

TEST(Verdict, BusyWorkersBoundTheRunByTheirLongestStage) {
  expect_verdict(judge(MadeUp{}.report(), 0.4), Bound::transform, "decode", "81.0%");
  expect_verdict(judge(MadeUp{.read = 0.8}.report(), 0.4), Bound::storage, "read", "80.0%");
  expect_verdict(judge(MadeUp{}.report()), Bound::transform, "decode", "99.0%");
}

TEST(Verdict, SaysHowFarMoreWorkersHelp) {
  const Verdict by_copy = judge(MadeUp{.copy = 0.5}.report());
  EXPECT_NEAR(by_copy.speedup_limit, 2, 1e-9);
  EXPECT_EQ(by_copy.next_bound, "copy");
  EXPECT_THAT(by_copy.advice, HasSubstr("2.0 times"));
  EXPECT_THAT(by_copy.advice, HasSubstr("more workers"));
  const Verdict by_step = judge(MadeUp{}.report(), 0.2);
  EXPECT_NEAR(by_step.speedup_limit, 1.25, 1e-9);
  EXPECT_EQ(by_step.next_bound, "step");
  EXPECT_THAT(judge(MadeUp{.cores = 2}.report()).advice, HasSubstr("more cores"))
      << "each core has its worker";
  EXPECT_EQ(judge(MadeUp{.utilization = 0.5, .copy = 0.99}.report(), 0.4).speedup_limit, 1)
      << "more workers do not help a copy";
}

TEST(Verdict, ABusyCopyStreamBoundsTheRun) {
  expect_verdict(
      judge(MadeUp{.utilization = 0.3, .copy = 0.95, .stall = 0.3, .ahead = 0.4}.report(), 0.5),
      Bound::copy, "copy", "95.0%");
  expect_verdict(judge(MadeUp{.utilization = 0.3, .copy = 0.95, .stall = 0, .ahead = 0.7}.report()),
                 Bound::copy, "copy", "2.1 GB/s");
}

TEST(Verdict, TheBusierOfStreamAndTrainerBoundsTheRun) {
  expect_verdict(
      judge(MadeUp{.utilization = 0.3, .copy = 0.9, .trainer = 0.89, .stall = 0}.report()),
      Bound::copy, "copy", "90.0%");
  expect_verdict(
      judge(MadeUp{.utilization = 0.3, .copy = 0.9, .trainer = 0.91, .stall = 0}.report()),
      Bound::trainer, "trainer", "91.0%");
}

TEST(Verdict, WorkersThatAreKeptFromTheirProcessorsLackCores) {
  expect_verdict(judge(MadeUp{.delay = 0.6, .workers = 4, .cores = 1}.report(), 0.4), Bound::cores,
                 "cores", "60.0%");
  EXPECT_THAT(judge(MadeUp{.delay = 0.6, .workers = 4, .cores = 1}.report()).advice,
              HasSubstr("more processors"));
  EXPECT_THAT(judge(MadeUp{.delay = 0.6, .workers = 2, .cores = 2}.report()).advice,
              HasSubstr("Other work"));
  expect_verdict(judge(MadeUp{.stall = 0.001, .delay = 0.6}.report(), 0.001), Bound::step, "step",
                 "0.1%");
}

TEST(Verdict, ATrainerThatComesLateBoundsTheRun) {
  expect_verdict(
      judge(MadeUp{.utilization = 0.3, .trainer = 0.97, .stall = 0.001, .ahead = 0.001}.report(),
            0.5),
      Bound::trainer, "trainer", "97.0%");
  expect_verdict(judge(MadeUp{.utilization = 0.3, .trainer = 0.97, .stall = 0.001}.report()),
                 Bound::trainer, "trainer", "97.0%");
}

TEST(Verdict, AnEmptyReportIsNoTrouble) {
  EXPECT_FALSE(judge(Report()).text.empty());
  EXPECT_FALSE(judge(Report(), 0).text.empty());
  EXPECT_FALSE(judge(Report(), 1).text.empty());
}

TEST(Verdict, DoesNotAskForTheCoreThatIsLeftFreeForLaunches) {
  Report report = MadeUp{.workers = 7}.report();
  EXPECT_THAT(judge(report).advice, HasSubstr("Take more workers"));
  report.launch_cores = 1;
  EXPECT_THAT(judge(report).advice, Not(HasSubstr("Take more workers")));
}

TEST(WarnOfDelay, SaysThatWorkersWaitForProcessors) {
  Report calm = MadeUp{.delay = 0.1}.report();
  warn_of_delay(calm);
  calm.worker_delay.reset();
  warn_of_delay(calm);
  EXPECT_THAT(calm.warnings, IsEmpty());
  Report ready = MadeUp{.utilization = 0.9, .trainer = 0.97, .stall = 0.02, .delay = 0.6}.report();
  warn_of_delay(ready);
  EXPECT_THAT(ready.warnings, IsEmpty()) << "the trainer does not wait, so it costs nothing";
  Report tokens = MadeUp{.utilization = 0.1, .delay = 0.2, .seconds = 1, .batches = 20000}.report();
  warn_of_delay(tokens);
  EXPECT_THAT(tokens.warnings, IsEmpty()) << "workers have little to do";
  Report report = MadeUp{.delay = 0.234}.report();
  warn_of_delay(report);
  EXPECT_THAT(
      report.warnings,
      ElementsAre(HasSubstr("the 2 workers are kept waiting for a processor 23.4% of the time")));
}

}  // namespace
}  // namespace millrace
