// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/stall_account.h"

#include <gtest/gtest.h>
#include <millrace/error.h>

#include <cmath>

namespace millrace::cli {
namespace {

const EpochShare& part_of(const StallAccount& account, EpochPart part) {
  const EpochShare* found = account.find(part);
  if (found == nullptr)
    throw std::runtime_error("no part " + std::to_string(static_cast<int>(part)));
  return *found;
}

PhaseTimes exact_times() {
  return {.step = {30, 30},
          .ready_batch = {31, 31},
          .copies = {35, 35},
          .loader = {80, 80},
          .warm_pass = {90, 90},
          .cold_pass = {110, 110}};
}

TEST(Repeated, HasMeanDeviationAndNoise) {
  const Repeated three = repeated({1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_DOUBLE_EQ(three.deviation, 1);
  EXPECT_NEAR(three.noise, 4.302652729911275 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(repeated({1, 3}).noise, 12.706204736432095 * std::sqrt(2) / std::sqrt(2), 1e-9);
}

TEST(Repeated, OfASingleValueNothingIsSure) { EXPECT_TRUE(std::isinf(repeated({5}).noise)); }

TEST(Repeated, OfManyRoundsUsesTheirQuantile) {
  std::vector<double> values(100, 1);
  for (std::size_t at = 0; at < values.size(); at += 2) values[at] = 3;
  EXPECT_NEAR(repeated(values).noise, 1.984216951586 * repeated(values).deviation / 10, 1e-9);
}

TEST(StallAccount, IsTheDifferencesOfThePhases) {
  const StallAccount account = account_stalls(exact_times());
  EXPECT_DOUBLE_EQ(part_of(account, EpochPart::compute).batch_ms, 30);
  EXPECT_DOUBLE_EQ(part_of(account, EpochPart::trainer).batch_ms, 1);
  EXPECT_DOUBLE_EQ(part_of(account, EpochPart::copy).batch_ms, 4);
  EXPECT_DOUBLE_EQ(part_of(account, EpochPart::preparation).batch_ms, 45);
  EXPECT_DOUBLE_EQ(part_of(account, EpochPart::fetch).batch_ms, 20);
  EXPECT_DOUBLE_EQ(account.batch_ms, 100);
  EXPECT_DOUBLE_EQ(account.share(EpochPart::preparation), 0.45);
  EXPECT_DOUBLE_EQ(account.waiting(), 0.7);
  EXPECT_FALSE(account.unsure());
}

TEST(StallAccount, TakesDifferencesRoundByRound) {
  // A slow round is slow in both phases, so the difference has no more noise.
  PhaseTimes times = exact_times();
  times.copies = {35, 55};
  times.loader = {80, 101};
  const EpochShare preparation = part_of(account_stalls(times), EpochPart::preparation);
  EXPECT_DOUBLE_EQ(preparation.measured.mean, 45.5);
  EXPECT_NEAR(preparation.measured.deviation, std::sqrt(0.5), 1e-9);
  EXPECT_FALSE(preparation.within_noise);
}

TEST(StallAccount, WhatIsWithinASmallNoiseCountsAsNone) {
  PhaseTimes times = exact_times();
  times.copies = {31.0, 31.1};
  const StallAccount account = account_stalls(times);
  const EpochShare copy = part_of(account, EpochPart::copy);
  EXPECT_TRUE(copy.within_noise);
  EXPECT_FALSE(copy.unsure);
  EXPECT_EQ(copy.batch_ms, 0);
  EXPECT_GT(copy.measured.mean, 0);
  EXPECT_FALSE(account.unsure());
}

TEST(StallAccount, WhatALargeNoiseHidesIsUnsureAndCountsAsMeasured) {
  PhaseTimes times = exact_times();
  times.loader = {60, 130};
  const StallAccount account = account_stalls(times);
  const EpochShare preparation = part_of(account, EpochPart::preparation);
  EXPECT_TRUE(preparation.within_noise);
  EXPECT_TRUE(preparation.unsure);
  EXPECT_DOUBLE_EQ(preparation.batch_ms, 60);
  EXPECT_TRUE(account.unsure());
}

TEST(StallAccount, APhaseThatIsFasterWithMoreToDoHasNoStall) {
  PhaseTimes times = exact_times();
  times.cold_pass = {80, 80};
  const StallAccount account = account_stalls(times);
  EXPECT_EQ(part_of(account, EpochPart::fetch).batch_ms, 0);
  EXPECT_DOUBLE_EQ(part_of(account, EpochPart::fetch).measured.mean, -10);
  EXPECT_DOUBLE_EQ(account.batch_ms, 80);
}

TEST(StallAccount, SharesAddUpToOne) {
  PhaseTimes times = exact_times();
  times.ready_batch = {29, 30.5};
  double sum = 0;
  for (const EpochShare& part : account_stalls(times).parts) sum += part.share;
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(StallAccount, WithoutAColdCacheThereIsNoFetchPart) {
  PhaseTimes times = exact_times();
  times.cold_pass.clear();
  times.warm_pass.clear();
  const StallAccount account = account_stalls(times);
  EXPECT_EQ(account.find(EpochPart::fetch), nullptr);
  EXPECT_EQ(account.share(EpochPart::fetch), 0);
  EXPECT_DOUBLE_EQ(account.batch_ms, 80);
}

TEST(StallAccount, RefusesPhasesOfDifferentLengths) {
  PhaseTimes no_cold = exact_times();
  no_cold.cold_pass.clear();
  PhaseTimes short_loader = exact_times();
  short_loader.loader.pop_back();
  for (const PhaseTimes& times : {PhaseTimes{}, no_cold, short_loader})
    EXPECT_THROW(account_stalls(times), Error);
}

TEST(FromStart, CountsTheStartOncePerEpoch) {
  // A pass over the whole epoch: its time, however it is divided.
  EXPECT_DOUBLE_EQ(from_start_ms(100, 60, 7, 7), 160.0 / 7);
  // A pass over a tenth: the start is not multiplied by ten.
  EXPECT_DOUBLE_EQ(from_start_ms(100, 90, 10, 100), (100 + 10 * 99.0) / 100);
  EXPECT_DOUBLE_EQ(from_start_ms(100, 0, 1, 1), 100);
  // Fewer records than a batch has.
  EXPECT_DOUBLE_EQ(from_start_ms(100, 0, 1, 0.4), 100);
}

}  // namespace
}  // namespace millrace::cli
