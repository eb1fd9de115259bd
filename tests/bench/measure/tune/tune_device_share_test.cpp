// SPDX-License-Identifier: Apache-2.0
//
// The search of the share of images that the device makes, on simulated machines. A worker makes
// 1000 images a second, or packs 10000 for the device.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure/tune/made_up_machine.h"
#include "measure/page/page.h"
#include "measure/tune/tune_output.h"
#include "measure/tune/tune_page.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

double share_of(const TuneSetting& setting) { return setting.device_share.value(); }

double workers_rate(const TuneSetting& setting) {
  return 1000.0 * setting.workers / (1 - 0.9 * share_of(setting));
}

FakeMachine machine_with(unsigned max_workers, double samples_per_second) {
  FakeMachine machine;
  machine.goal.max_workers = max_workers;
  machine.goal.tune_device_share = true;
  if (samples_per_second > 0) machine.goal.step_ms = step_for(samples_per_second);
  machine.rate = workers_rate;
  return machine;
}

TEST(TuneDeviceShare, IsTheSmallestThatFeedsTheStep) {
  // One worker makes 1000, 1290, 1818, 3077 and 10000 images a second.
  for (const auto& [needed, share] :
       {std::pair{950.0, 0.0}, {1250.0, 0.25}, {1750.0, 0.5}, {2900.0, 0.75}, {9000.0, 1.0}}) {
    FakeMachine machine = machine_with(4, needed);
    const TuneFindings found = machine.tune();
    EXPECT_EQ(found.chosen.device_share, share) << needed;
    EXPECT_EQ(found.chosen.workers, 1U) << needed;
    EXPECT_EQ(found.outcome, TuneOutcome::feeds_step) << needed;
    EXPECT_EQ(found.points[found.chosen_point].setting, found.chosen);
    EXPECT_LE(machine.now, machine.goal.budget_seconds);
  }
}

TEST(TuneDeviceShare, IsTheSmallestThatLosesNothingWithoutAStep) {
  // The device makes 1800 images a second in any case.
  FakeMachine machine = machine_with(1, 0);
  machine.rate = [](const TuneSetting& setting) { return std::min(1800.0, workers_rate(setting)); };
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.chosen.device_share, 0.5);
  EXPECT_EQ(found.outcome, TuneOutcome::no_step);
}

// With all images on the device a step takes 20% longer, and the device is never idle.
TEST(TuneDeviceShare, DoesNotMakeTheStepSlower) {
  const auto slowed = [](const TuneSetting& setting) {
    return 1900 / (1 + 0.2 * share_of(setting));
  };
  FakeMachine one = machine_with(1, 1900);
  one.slowed_step = slowed;
  const TuneFindings with_one = one.tune();
  EXPECT_EQ(with_one.chosen.device_share, 0.5);
  EXPECT_EQ(with_one.chosen.workers, 1U);

  FakeMachine many = machine_with(8, 1900);
  many.slowed_step = slowed;
  const TuneFindings with_many = many.tune();
  EXPECT_EQ(with_many.chosen.device_share, 0.0);
  EXPECT_EQ(with_many.chosen.workers, 2U);
  EXPECT_EQ(with_many.outcome, TuneOutcome::feeds_step);
  EXPECT_LE(many.now, many.goal.budget_seconds);
}

// The device makes 4000 images a second, so more workers help only with a smaller share.
TEST(TuneDeviceShare, IsSharedWithWorkersWhereTheDeviceIsTheLimit) {
  FakeMachine machine = machine_with(4, 0);
  machine.rate = [](const TuneSetting& setting) {
    const double share = share_of(setting);
    return share > 0 ? std::min(workers_rate(setting), 4000 / share) : workers_rate(setting);
  };
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.chosen.device_share, 0.5);
  EXPECT_EQ(found.chosen.workers, 4U);
}

TEST(TuneDeviceShare, NoisyMachinesGiveSettingsThatLoseLittle) {
  int good = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    FakeMachine machine = machine_with(4, 0);
    machine.seed = seed;
    machine.noise = 0.05;
    machine.goal.max_workers = 1;
    machine.rate = [](const TuneSetting& setting) {
      return std::min(1800.0, workers_rate(setting));
    };
    good += machine.worth(machine.tune().chosen) >= 0.9 * 1800 ? 1 : 0;
  }
  EXPECT_GE(good, 19);
}

// The workers are searched twice, and may be unclear in both searches.
TEST(TuneDeviceShare, NamesEachUnclearVariableOnce) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    FakeMachine machine = machine_with(4, 0);
    machine.seed = seed;
    machine.noise = 0.6;
    machine.goal.budget_seconds = 10;
    machine.rate = [](const TuneSetting& setting) {
      return share_of(setting) < 1 ? 4000 + 10.0 * setting.workers : 1000.0;
    };
    std::vector<TuneVariable> unclear = machine.tune().not_told_apart;
    std::ranges::sort(unclear);
    EXPECT_EQ(std::ranges::adjacent_find(unclear), unclear.end()) << seed;
  }
}

// All settings are equally good. Further runs of the chosen setting and its neighbours show so for
// the workers and the prefetch, not for the share.
TEST(TuneDeviceShare, StaysUnclearWhereOtherVariablesBecomeClear) {
  int alone = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    FakeMachine machine = machine_with(1, 0);
    machine.seed = seed;
    machine.noise = 0.1;
    machine.goal.budget_seconds = 30;
    machine.rate = [](const TuneSetting&) { return 1000.0; };
    const std::vector<TuneVariable> found = machine.tune().not_told_apart;
    alone += found == std::vector{TuneVariable::device_share} ? 1 : 0;
  }
  EXPECT_GE(alone, 1);
}

TEST(TuneDeviceShare, IsNotSearchedUnlessAskedFor) {
  FakeMachine machine;
  const TuneFindings found = machine.tune();
  EXPECT_EQ(found.phases.size(), 3U);
  EXPECT_EQ(found.chosen.device_share, std::nullopt);
  EXPECT_THAT(found.verdict, Not(HasSubstr("device_share")));
}

TEST(TuneDeviceShare, IsInEachOutput) {
  TuneResult result;
  FakeMachine machine = machine_with(4, 1750);
  result.goal = machine.goal;
  result.findings = machine.tune();
  result.recipe = R"({"device_share":0.5})";
  ASSERT_EQ(result.findings.phases.size(), 4U);
  EXPECT_EQ(result.findings.phases[1].variable, TuneVariable::device_share);
  const std::string text = to_text(result);
  EXPECT_THAT(text, HasSubstr("device_share (with workers 1, prefetch 8"));
  EXPECT_THAT(text, HasSubstr("> 0.5"));
  EXPECT_THAT(text, HasSubstr("device_share 0.5: the least that loses nothing, "));
  EXPECT_THAT(text, HasSubstr("batches of 64, device_share 0.5: the smallest setting that feeds"));
  const Json json = Json::parse(to_json(result));
  EXPECT_EQ(json.at("chosen").at("device_share"), 0.5);
  EXPECT_EQ(json.at("goal").at("tune_device_share"), true);
  EXPECT_EQ(json.at("phases").at(1).at("variable"), "device_share");
  EXPECT_EQ(Json::parse(saved_options(result).tuned_for.recipe).at("device_share"), 0.5);
  const std::string page = page_html(page_of(result));
  EXPECT_THAT(page, HasSubstr("Share of images for the device"));
  EXPECT_THAT(page, HasSubstr("0.5 (chosen)"));
}

TEST(TuneDeviceShare, IsNamedWhereTheTimeIsOver) {
  FakeMachine machine = machine_with(4, 1750);
  machine.overhead_seconds = 20;
  const TuneFindings found = machine.tune();
  EXPECT_LE(machine.now, machine.goal.budget_seconds);
  ASSERT_GE(found.not_measured.size(), 2U);
  EXPECT_THAT(found.not_measured[1], HasSubstr("device_share: "));
}

}  // namespace
}  // namespace millrace::cli
