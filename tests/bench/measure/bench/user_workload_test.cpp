// SPDX-License-Identifier: Apache-2.0
//
// millrace/measure.h with trainers of the tests. Linked without the command.
#include "measure/bench/user_workload.h"

#include <gmock/gmock.h>
#include <millrace/error.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::Optional;
using Json = nlohmann::json;

std::shared_ptr<Device> host(bool copies) {
  return std::make_shared<HostDevice>(HostDeviceOptions{.copies = copies});
}

TEST(UserBench, RunsTheTrainersStepOnFullBatchesInHostMemory) {
  UserWorkload own;
  const auto result = measure::bench(own.workload(host(false)), {.warmup = 3, .batches = 20});
  EXPECT_EQ(result.report.batches, 20U);
  EXPECT_EQ(result.report.samples, 20 * UserWorkload::batch_size);
  EXPECT_EQ(result.batch_ms.size(), 20U);
  // Further steps run on a batch that is already there.
  EXPECT_GT(own.steps, 23U);
  EXPECT_EQ(own.wrong, 0U);
  // A step sleeps for at least a millisecond.
  EXPECT_THAT(result.step_ms, Optional(Ge(1.0)));
  EXPECT_THAT(result.device_idle, Optional(AllOf(Ge(0.0), Le(1.0))));
  EXPECT_TRUE(result.idle_by_synthetic);
  EXPECT_THAT(result.idle_floor, Optional(AllOf(Ge(0.0), Le(1.0))));
  EXPECT_LE(result.samples_per_second, 1e3 * UserWorkload::batch_size);
  EXPECT_FALSE(result.verdict.text.empty());
}

TEST(UserBench, TimesWhatTheStepPutsOnTheStreamOfADeviceThatCopies) {
  UserWorkload own;
  own.on_device = true;
  const auto result = measure::bench(own.workload(host(true), 3ms), {.warmup = 3, .batches = 20});
  EXPECT_EQ(own.wrong, 0U);
  EXPECT_THAT(result.step_ms, Optional(Ge(2.999)));
  EXPECT_THAT(result.device_idle, Optional(AllOf(Ge(0.0), Le(1.0))));
  EXPECT_GT(result.report.copied_bytes, 0U);
}

TEST(UserBench, RunsOnTheTrainersStream) {
  UserWorkload own;
  own.on_device = true;
  own.stream = std::make_shared<HostStream>();
  const auto result = measure::bench(own.workload(host(true)), {.warmup = 1, .batches = 12});
  EXPECT_EQ(own.wrong, 0U);
  own.stream->synchronize();
  EXPECT_EQ(own.stream->steps().steps, own.steps);
  EXPECT_THAT(result.step_ms, Optional(Ge(0.999)));
}

TEST(UserBench, SaysTheSameInEachForm) {
  UserWorkload own;
  const auto result =
      measure::bench(own.workload(host(false)), {.warmup = 1, .batches = 12, .page = true});
  EXPECT_THAT(result.text, HasSubstr("memory: 640 records"));
  EXPECT_THAT(result.text, HasSubstr("a step of the trainer's own"));
  EXPECT_THAT(result.text, HasSubstr(result.verdict.text));
  const Json json = Json::parse(result.json);
  EXPECT_EQ(json.at("batches"), 12);
  EXPECT_EQ(json.at("options").at("dataset"), "memory");
  EXPECT_DOUBLE_EQ(json.at("idle_floor_percent").get<double>(), 100 * result.idle_floor.value());
  EXPECT_TRUE(json.at("dataset_mb").is_null()) << "it has no files";
  for (const char* key : {"plain_h2d_busy_gb_per_second", "plain_h2d_malloc_host_gb_per_second"})
    EXPECT_TRUE(json.at(key).is_null()) << key << " is measured on a GPU alone";
  EXPECT_TRUE(json.at("options").at("step_ms").is_null());
  EXPECT_TRUE(json.at("options").at("recipe_program").is_null());
  EXPECT_DOUBLE_EQ(json.at("samples_per_second").get<double>(), result.samples_per_second);
  EXPECT_THAT(result.page, HasSubstr("<title>"));
  EXPECT_THAT(result.page, HasSubstr("millrace bench: memory"));
  const auto unasked = measure::bench(own.workload(host(false)), {.warmup = 1, .batches = 12});
  EXPECT_THAT(unasked.page, IsEmpty());
}

TEST(UserBench, TakesBatchesAsFastAsTheyComeWithoutAStep) {
  UserWorkload own;
  measure::Workload workload = own.workload(host(false));
  workload.step = {};
  const auto result = measure::bench(workload, {.warmup = 1, .batches = 12});
  EXPECT_EQ(own.steps, 0U);
  EXPECT_EQ(result.report.batches, 12U);
  EXPECT_FALSE(result.device_idle || result.step_ms || result.idle_by_synthetic ||
               result.idle_floor);
}

TEST(UserBench, GivesThePipelineTheTrainersOptions) {
  UserWorkload own;
  measure::Workload workload = own.workload(host(false));
  workload.pipeline.name = "mine";
  workload.pipeline.order = Order::sequential();
  workload.pipeline.epochs = 1;  // ignored: 640 records are 80 batches
  workload.pipeline.runtime = make_runtime({.workers = 2});
  std::vector<std::uint64_t> first;
  workload.step = [&](const Batch& batch, Stream&) {
    if (batch.number() == 0) first.assign(batch.indices().begin(), batch.indices().end());
  };
  const auto result = measure::bench(workload, {.warmup = 0, .batches = 100});
  EXPECT_EQ(result.report.pipeline, "mine");
  EXPECT_EQ(result.report.workers, 2U);
  EXPECT_EQ(result.report.batches, 100U);
  EXPECT_EQ(first, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(UserBench, RefusesAWorkloadThatLacksSomething) {
  UserWorkload own;
  const measure::Workload whole = own.workload(host(false));
  const auto message = [](const measure::Workload& workload) -> std::string {
    try {
      measure::bench(workload, {.batches = 1});
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument ? error.what() : "another error";
    }
    return "none";
  };
  measure::Workload lacking = whole;
  lacking.dataset = nullptr;
  EXPECT_THAT(message(lacking), HasSubstr("no dataset"));
  lacking = whole;
  lacking.transform = nullptr;
  EXPECT_THAT(message(lacking), HasSubstr("no transform"));
  lacking = whole;
  lacking.device = nullptr;
  EXPECT_THAT(message(lacking), HasSubstr("no device"));
}

TEST(UserBench, ThrowsWhatTheStepThrows) {
  UserWorkload own;
  for (const bool copies : {false, true}) {
    measure::Workload workload = own.workload(host(copies));
    workload.step = [](const Batch&, Stream&) {
      throw std::runtime_error("the loss is no number");
    };
    EXPECT_THROW(measure::bench(workload, {.batches = 1}), std::runtime_error);
  }
}

TEST(UserBench, PollsWhileItRunsAndWaits) {
  UserWorkload own;
  for (const bool copies : {false, true})
    for (const bool waits : {false, true}) {
      measure::Workload workload = own.workload(host(copies));
      workload.step = {};
      if (waits)
        own.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(400ms); };
      int polls = 0;
      workload.poll = [&] {
        if (++polls == 2) throw std::runtime_error("enough");
      };
      EXPECT_THROW(measure::bench(workload, {.duration = 1h}), std::runtime_error);
    }
}

TEST(UserBench, AWaitThatIsPolledIsAStall) {
  UserWorkload own;
  own.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(80ms); };
  measure::Workload workload = own.workload(host(false), 0us);
  workload.pipeline.runtime = make_runtime({.workers = 1});
  workload.poll = [] {};
  const auto result = best_of_three(
      [&workload] { return measure::bench(workload, {.warmup = 3, .batches = 3}); },
      [](const measure::BenchResult& found) {
        return found.report.stall.p50_ms >= 400 && found.verdict.bound == Bound::transform;
      });
  // A batch takes 640 ms, two polls.
  EXPECT_GE(result.report.stall.p50_ms, 400) << result.text;
  EXPECT_EQ(result.verdict.bound, Bound::transform) << result.text;
}

TEST(UserBench, SaysIfTheStepKeepsAllBatches) {
  UserWorkload own;
  for (const bool polled : {false, true}) {
    measure::Workload workload = own.workload(host(false));
    std::vector<Batch> kept;
    workload.step = [&](const Batch& batch, Stream&) { kept.push_back(batch); };
    if (polled) workload.poll = [] {};
    try {
      measure::bench(workload, {.batches = 100});
      ADD_FAILURE() << "it has ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::slots_exhausted) << error.what();
    }
  }
}

TEST(UserBench, NamesOptionsOutOfRange) {
  UserWorkload own;
  const measure::Workload workload = own.workload(host(false));
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument ? error.what() : "another error";
    }
    return "none";
  };
  const auto bench = [&](const measure::BenchOptions& options) {
    return message([&] { measure::bench(workload, options); });
  };
  EXPECT_EQ(bench({.duration = -1s}), "duration is -1, must be in 0.001..86400");
  EXPECT_EQ(bench({.batches = 1ULL << 50}),
            "batches is 1.12589990684262e+15, must be in 0..1099511627776");
  const auto tune = [&](const measure::TuneOptions& options) {
    return message([&] { measure::tune(workload, options); });
  };
  EXPECT_EQ(tune({.max_workers = 5000}), "max_workers is 5000, must be in 0..4096");
  EXPECT_EQ(tune({.p99_ms = 0}), "p99_ms is 0, must be in 0.001..3600000");
  EXPECT_THAT(tune({.memory_bytes = 7}), HasSubstr("memory_bytes is 7, must be in 1024.."));
  EXPECT_EQ(tune({.budget = std::chrono::duration<double>(std::nan(""))}),
            "budget is nan, must be in 0.1..86400");
  EXPECT_EQ(message([&] { measure::diagnose(workload, {.rounds = 1}); }),
            "rounds is 1, must be in 2..1000000");
}

/// Runs a tune of half a second or more for samples that take `sample_time` each.
measure::TuneResult tuned(UserWorkload& own, std::chrono::microseconds sample_time,
                          std::chrono::microseconds step_time) {
  if (sample_time.count() > 0)
    own.transform->on_begin = [=](const Record&) { std::this_thread::sleep_for(sample_time); };
  return measure::tune(own.workload(host(false), step_time),
                       {.max_workers = 2, .budget = std::chrono::seconds(6)});
}

TEST(UserTune, TakesMoreWorkersWhereTheTrainerWaitsForThem) {
  UserWorkload own;
  // A batch takes one worker at least 16 ms, and the step 1 ms.
  const auto result =
      best_of_longer([&own](int factor) { return tuned(own, 2ms * factor, 1ms * factor); },
                     [](const measure::TuneResult& found) { return found.chosen.workers == 2; });
  EXPECT_EQ(result.chosen.workers, 2U) << result.text;
}

TEST(UserTune, TakesOneWorkerWhereThatIsEnough) {
  UserWorkload own;
  const auto is_enough = [](const measure::TuneResult& found) {
    return found.chosen.workers == 1 || found.doubtful;
  };
  const auto result = best_of_three([&own] { return tuned(own, 0ms, 8ms); }, is_enough);
  // Beside other work `tune` may be unable to decide, and then says so.
  EXPECT_TRUE(is_enough(result)) << result.text;
  EXPECT_EQ(own.wrong, 0U);
}

TEST(UserTune, SearchesTheShareOfATransformThatHasOne) {
  UserWorkload own;
  std::vector<double> shares;
  std::vector<measure::Setting> told;
  measure::TuneOptions options{.max_workers = 1, .budget = std::chrono::milliseconds(500)};
  options.transform_of_share = [&](double share) {
    shares.push_back(share);
    return own.transform;
  };
  options.on_run = [&](const measure::Setting& setting) { told.push_back(setting); };
  const auto result = measure::tune(own.workload(host(false)), options);
  ASSERT_TRUE(result.chosen.device_share.has_value());
  EXPECT_THAT(shares, Contains(*result.chosen.device_share));
  EXPECT_THAT(told, Each(Field(&measure::Setting::device_share, ::testing::Ne(std::nullopt))));
  EXPECT_THAT(result.text, HasSubstr("device_share (with workers 1"));

  options.transform_of_share = [](double) { return std::shared_ptr<const Transform>(); };
  EXPECT_THROW(measure::tune(own.workload(host(false)), options), Error);
}

TEST(UserTune, SaysWhatItTriedAndGivesOptionsToSave) {
  UserWorkload own;
  std::vector<measure::Setting> told;
  const auto tune = [&](int factor) {
    told.clear();
    measure::TuneOptions options{.max_workers = 2, .budget = std::chrono::seconds(factor)};
    options.on_run = [&](const measure::Setting& setting) { told.push_back(setting); };
    return measure::tune(own.workload(host(false)), options);
  };
  // A busy machine needs more time for a run with each number of workers.
  const auto result = best_of_longer(tune, [&told](const measure::TuneResult&) {
    return std::ranges::any_of(told, [](const auto& one) { return one.workers == 1; });
  });

  EXPECT_THAT(told, Contains(result.chosen));
  for (const unsigned workers : {1U, 2U})
    EXPECT_THAT(told, Contains(Field(&measure::Setting::workers, workers)));
  EXPECT_THAT(result.settings, Contains(Field(&measure::MeasuredSetting::setting, result.chosen)));
  EXPECT_THAT(result.settings, Each(Field(&measure::MeasuredSetting::device_idle, std::nullopt)));
  EXPECT_GE(result.step_ms, 1.0);

  EXPECT_EQ(result.options.workers, result.chosen.workers);
  EXPECT_EQ(result.options.tuned_for.dataset, "memory");
  EXPECT_EQ(result.options.tuned_for.step_ms, result.step_ms);
  const TemporaryFolder folder;
  save_options(folder / "tuned.json", result.options);
  const LoadedOptions loaded = load_options(folder / "tuned.json");
  EXPECT_EQ(loaded.pipeline.slots.prefetch, result.chosen.prefetch);
  EXPECT_EQ(loaded.pipeline.batch_size, UserWorkload::batch_size);
  EXPECT_EQ(loaded.why, result.why);
  EXPECT_THAT(loaded.machine_differences, IsEmpty());

  const Json json = Json::parse(result.json);
  EXPECT_EQ(json.at("own_step_ms"), result.step_ms);
  EXPECT_EQ(json.at("chosen").at("workers"), result.chosen.workers);
  EXPECT_THAT(result.text, HasSubstr("the trainer's own step"));
  EXPECT_THAT(result.text, HasSubstr(result.verdict));
  EXPECT_THAT(result.page, HasSubstr("millrace tune: memory"));
}

TEST(UserTune, LooksAtTheIdleTimeOfADeviceThatCopies) {
  UserWorkload own;
  own.on_device = true;
  const auto result = measure::tune(own.workload(host(true), 4ms),
                                    {.max_workers = 1, .budget = std::chrono::seconds(1)});
  EXPECT_GE(result.step_ms, 3.999);
  ASSERT_THAT(result.settings, Not(IsEmpty()));
  EXPECT_TRUE(result.settings.front().device_idle);
  EXPECT_EQ(Json::parse(result.json).at("goal").at("step_ms"), result.step_ms);
}

TEST(UserDiagnose, DividesTheTrainersTime) {
  UserWorkload own;
  own.transform->on_begin = [](const Record&) { std::this_thread::sleep_for(2ms); };
  for (const bool copies : {false, true}) {
    own.on_device = copies;
    measure::Workload workload = own.workload(host(copies));
    workload.pipeline.runtime = make_runtime({.workers = 1});
    const auto result = testing::best_of_three(
        [&workload] { return measure::diagnose(workload, {.rounds = 2, .batches = 12}); },
        [](const auto& found) { return found.verdict.bound == Bound::transform; });
    std::vector<std::string> names;
    for (const measure::EpochTime& part : result.parts) names.push_back(part.name);
    EXPECT_EQ(names, (std::vector<std::string>{"compute", "trainer", "copy", "preparation"}));
    // A batch takes its worker 16 ms, and the step 1 ms.
    EXPECT_GE(result.parts[0].batch_ms, 0.99);
    const auto longest = std::ranges::max_element(result.parts, {}, &measure::EpochTime::batch_ms);
    EXPECT_EQ(longest->name, "preparation") << result.text;
    EXPECT_EQ(result.verdict.bound, Bound::transform) << result.text;
    EXPECT_THAT(result.why_no_fetch, HasSubstr("no files"));
    EXPECT_THAT(result.text, HasSubstr("the trainer's own"));
    EXPECT_EQ(Json::parse(result.json).at("cold_cache").at("measured"), false);
    EXPECT_THAT(result.page, HasSubstr("millrace diagnose"));
    EXPECT_EQ(own.wrong, 0U);
  }
}

TEST(UserDiagnose, OpensTheDatasetAnewIfItCan) {
  UserWorkload own;
  measure::Workload workload = own.workload(host(false));
  workload.dataset = nullptr;
  unsigned opened = 0;
  const auto result = measure::diagnose(workload, {.rounds = 2, .batches = 3, .open = [&] {
                                                     ++opened;
                                                     return std::make_shared<MemoryDataset>(64);
                                                   }});
  EXPECT_GT(opened, 2U);
  EXPECT_THAT(result.text, HasSubstr("memory: 64 records"));
}

TEST(UserDiagnose, TakesAStepAndTwoRounds) {
  UserWorkload own;
  measure::Workload workload = own.workload(host(false));
  EXPECT_THROW(measure::diagnose(workload, {.rounds = 1}), Error);
  workload.step = {};
  EXPECT_THROW(measure::diagnose(workload), Error);
}

}  // namespace
}  // namespace millrace
