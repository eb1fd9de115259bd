// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/stall_verdict.h"

#include <gmock/gmock.h>

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// An account with exactly these milliseconds per batch.
StallAccount account_of(double compute, double copy, double preparation, double fetch) {
  const double loader = compute + copy + preparation;
  return account_stalls({.step = {compute, compute},
                         .ready_batch = {compute, compute},
                         .copies = {compute + copy, compute + copy},
                         .loader = {loader, loader},
                         .warm_pass = {loader, loader},
                         .cold_pass = {loader + fetch, loader + fetch}});
}

StallContext context_of(unsigned workers, unsigned cores) {
  StallContext context{.dataset_bytes = std::uintmax_t{1} << 38,
                       .memory_bytes = std::uintmax_t{1} << 34};
  context.report.workers = workers;
  context.report.cores = cores;
  context.report.stages = {{.name = "read", .share = 0.1},
                           {.name = "decode", .share = 0.7},
                           {.name = "augment", .share = 0.2}};
  return context;
}

TEST(StallVerdict, BelowTwoPercentOfWaitingTheStepBinds) {
  const Verdict verdict = judge_stalls(account_of(99, 0.5, 0.4, 0), context_of(2, 8));
  EXPECT_EQ(verdict.bound, Bound::step);
  EXPECT_EQ(verdict.stage, "step");
  EXPECT_NEAR(verdict.share, 99 / 99.9, 1e-9);
  EXPECT_THAT(verdict.text, HasSubstr("the step bounds the run"));
}

TEST(StallVerdict, NamesTheLargestStallWithItsShareAndTheLimitOfMoreWorkers) {
  const Verdict verdict = judge_stalls(account_of(40, 10, 50, 0), context_of(2, 8));
  EXPECT_EQ(verdict.bound, Bound::transform);
  EXPECT_EQ(verdict.stage, "preparation");
  EXPECT_NEAR(verdict.share, 0.5, 1e-9);
  EXPECT_NEAR(verdict.speedup_limit, 2, 1e-9);
  EXPECT_EQ(verdict.next_bound, "step");
  EXPECT_EQ(verdict.text,
            "the device waits 60.0% of an epoch: 50.0% for preparation, 10.0% for copy");
  EXPECT_THAT(verdict.advice, HasSubstr("decode is 70.0%"));
  EXPECT_THAT(verdict.advice, HasSubstr("there are 2 on 8 cores"));
  EXPECT_THAT(verdict.advice, HasSubstr("at most 2.0 times as fast (step binds then)"));
}

TEST(StallVerdict, WithoutSpareCoresMoreWorkersNeedThem) {
  const Verdict verdict = judge_stalls(account_of(40, 0, 60, 0), context_of(8, 8));
  EXPECT_THAT(verdict.advice, HasSubstr("Every core has a worker"));
}

TEST(StallVerdict, WorkersThatWaitForProcessorsNeedNoMoreOfThem) {
  StallContext context = context_of(2, 8);
  context.report.worker_delay = 0.4;
  EXPECT_THAT(judge_stalls(account_of(40, 0, 60, 0), context).advice,
              HasSubstr("wait 40.0% of their time for a processor"));
}

TEST(StallVerdict, ForCopiesMoreWorkersDoNotHelp) {
  const Verdict verdict = judge_stalls(account_of(50, 50, 0, 0), context_of(2, 8));
  EXPECT_EQ(verdict.bound, Bound::copy);
  EXPECT_DOUBLE_EQ(verdict.speedup_limit, 1);
  EXPECT_THAT(verdict.advice, HasSubstr("more workers would not help"));
}

TEST(StallVerdict, ADatasetLargerThanMemoryIsFetchedInEveryEpoch) {
  const Verdict verdict = judge_stalls(account_of(40, 0, 20, 40), context_of(2, 8));
  EXPECT_EQ(verdict.bound, Bound::storage);
  EXPECT_EQ(verdict.stage, "read");
  EXPECT_NEAR(verdict.speedup_limit, 1.25, 1e-9);
  EXPECT_THAT(verdict.advice, HasSubstr("Every epoch pays it"));
}

TEST(StallVerdict, WhereTheDatasetStaysCachedTheStallThatLastsIsNamedFirst) {
  StallContext context = context_of(2, 8);
  context.dataset_bytes = 1000;
  const Verdict verdict = judge_stalls(account_of(40, 0, 20, 40), context);
  EXPECT_EQ(verdict.bound, Bound::transform);
  EXPECT_NEAR(verdict.speedup_limit, 1.5, 1e-9);  // of an epoch of 60 ms after the first one
  EXPECT_EQ(verdict.next_bound, "step");
  EXPECT_THAT(verdict.text, HasSubstr("40.0% for fetch"));

  const Verdict only_fetch = judge_stalls(account_of(60, 0, 0, 40), context);
  EXPECT_EQ(only_fetch.bound, Bound::storage);
  EXPECT_THAT(only_fetch.advice, HasSubstr("first epoch's alone"));
}

TEST(StallVerdict, NamesTheShareOfTheDeviceThatMakesManyImages) {
  StallContext context = context_of(2, 8);
  const char* const said =
      "The device makes images 30.0% of its time (crop): a smaller device_share";
  EXPECT_THAT(judge_stalls(account_of(99, 0, 0, 0), context).advice,
              Not(HasSubstr("device_share")));
  context.report.stages.push_back({.name = "crop", .occupancy = 0.3, .on_device = true});
  context.report.worker_utilization = 0.2;
  for (const StallAccount& account : {account_of(99, 0, 0, 0), account_of(50, 50, 0, 0)})
    EXPECT_THAT(judge_stalls(account, context).advice, HasSubstr(said));
  const std::string waits = judge_stalls(account_of(40, 0, 60, 0), context).advice;
  EXPECT_THAT(waits, HasSubstr(said));
  EXPECT_THAT(waits, Not(HasSubstr("Take more workers")));

  context.report.worker_utilization = 0.9;  // the workers have no time for more images
  EXPECT_THAT(judge_stalls(account_of(40, 0, 60, 0), context).advice,
              Not(HasSubstr("device_share")));
  context.report.stages.back().occupancy = 0.01;
  EXPECT_THAT(judge_stalls(account_of(99, 0, 0, 0), context).advice,
              Not(HasSubstr("device_share")));
}

TEST(StallVerdict, SaysWhenItIsNotSure) {
  const PhaseTimes noisy{
      .step = {30, 30}, .ready_batch = {30, 30}, .copies = {30, 30}, .loader = {40, 100}};
  const Verdict verdict = judge_stalls(account_stalls(noisy), context_of(2, 8));
  EXPECT_EQ(verdict.bound, Bound::transform);
  EXPECT_THAT(verdict.text, HasSubstr("too noisy to be sure (preparation by"));
  EXPECT_THAT(judge_stalls(account_of(40, 0, 60, 0), context_of(2, 8)).text,
              Not(HasSubstr("noisy")));
}

}  // namespace
}  // namespace millrace::cli
