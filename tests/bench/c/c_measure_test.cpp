// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/c_measure.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/c/numbers.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using testing::elements;
using testing::fail;
using testing::FreeTensor;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using testing::NumbersRun;
using testing::OwnedTensor;
using ::testing::StrEq;
using testing::taken;
using Json = nlohmann::json;

/// A trainer over numbers, in batches of 4.
struct Trainer {
  Trainer() {
    run.setup.options = R"({"format": 1,
        "options": {"workers": 1, "batch_size": 4, "prefetch": 2}})";
    workload.struct_bytes = sizeof workload;
    workload.setup = &run.setup;
    workload.user = this;
    workload.step = [](void* user, millrace_batch* batch, std::uintptr_t stream,
                       millrace_error* error) -> millrace_status {
      auto* const self = static_cast<Trainer*>(user);
      const std::unique_ptr<millrace_batch, decltype(&millrace_batch_free)> freed(
          batch, &millrace_batch_free);
      if (++self->steps == self->failing_step) return fail(self->status, "out of memory", error);
      DLManagedTensor* label = nullptr;
      if (const auto status = millrace_batch_field(batch, "label", &label, error);
          status != MILLRACE_OK)
        return status;
      self->last = OwnedTensor(label);
      self->sizes.push_back(elements<std::int64_t>(*label).size());
      self->streams += stream;
      std::this_thread::sleep_for(self->step_time);
      return MILLRACE_OK;
    };
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() = default;

  /// The result as JSON; the status's name and the message after a failure.
  Json bench(std::uint64_t batches = 12) {
    const millrace_bench_options options{sizeof options, 2, batches, 5};
    return result(millrace_bench, &options);
  }
  Json tune(millrace_tune_options options) { return result(millrace_tune, &options); }
  Json diagnose(millrace_diagnose_options options) { return result(millrace_diagnose, &options); }
  template <typename Function, typename Options>
  Json result(Function measure, const Options* options) {
    char* json = nullptr;
    const millrace_status returned = measure(&workload, options, &json, &run.error);
    if (returned == MILLRACE_OK) return Json::parse(taken(json));
    EXPECT_EQ(json, nullptr);
    return std::string(millrace_status_name(returned)) + ": " + run.error.message;
  }

  NumbersRun run;
  millrace_workload workload{};
  std::chrono::microseconds step_time{1000};
  int failing_step = 0;
  millrace_status status = MILLRACE_TRANSFORM;
  int steps = 0;
  std::vector<std::size_t> sizes;
  std::uintptr_t streams = 0;
  /// Label of the last step's batch.
  OwnedTensor last;
  int polls = 0;
  std::vector<millrace_setting> told;
  int opened = 0;
};

constexpr millrace_tune_options tune_options{sizeof(millrace_tune_options), 2, 0, 0, 0, 1, nullptr};
constexpr millrace_diagnose_options diagnose_options{
    sizeof(millrace_diagnose_options), 2, 0, 3, 1, nullptr};

TEST(CMeasure, BenchRunsTheStepOnBatchesOfTheSetup) {
  Trainer trainer;
  const Json result = trainer.bench();
  ASSERT_TRUE(result.is_object()) << result;
  EXPECT_EQ(result.at("batches"), 12);
  EXPECT_EQ(result.at("samples"), 48);
  EXPECT_EQ(result.at("options").at("dataset"), "numbers");
  EXPECT_EQ(result.at("options").at("workers"), 1);
  EXPECT_EQ(result.at("options").at("batch_size"), 4);
  EXPECT_THAT(result.at("device_step_ms").get<double>(), Ge(1));
  EXPECT_THAT(result.at("device_idle_percent").get<double>(), AllOf(Ge(0), Le(100)));
  EXPECT_THAT(result.at("verdict").at("text").get<std::string>(), Not(StrEq("")));
  EXPECT_THAT(trainer.steps, Ge(14));
  EXPECT_THAT(trainer.sizes, Each(4U));
  EXPECT_EQ(trainer.streams, 0U);
}

TEST(CMeasure, ATensorOutlivesTheMeasurement) {
  Trainer trainer;
  ASSERT_TRUE(trainer.bench(3).is_object());
  EXPECT_EQ(elements<std::int64_t>(*trainer.last).size(), 4U);
}

TEST(CMeasure, SaysIfTheStepKeepsAllBatches) {
  Trainer trainer;
  trainer.workload.step = [](void*, millrace_batch*, std::uintptr_t, millrace_error*) {
    return MILLRACE_OK + 0;
  };
  for (const bool polled : {false, true}) {
    if (polled) trainer.workload.interrupted = [](void*) { return 0; };
    EXPECT_THAT(trainer.bench(100).get<std::string>(), HasSubstr("live batches hold every"));
  }
}

TEST(CMeasure, BenchNeedsNoStepAndHasDefaults) {
  Trainer trainer;
  trainer.workload.step = nullptr;
  const Json result = trainer.bench();
  ASSERT_TRUE(result.is_object()) << result;
  EXPECT_TRUE(result.at("device_step_ms").is_null());
  trainer.workload.interrupted = [](void* user) { return ++static_cast<Trainer*>(user)->polls; };
  char* json = nullptr;
  EXPECT_EQ(millrace_bench(&trainer.workload, nullptr, &json, &trainer.run.error),
            MILLRACE_STOPPED);
  EXPECT_STREQ(trainer.run.error.message, "`interrupted` ended the measurement");
  EXPECT_EQ(trainer.polls, 1);
}

TEST(CMeasure, TuneFindsASetting) {
  Trainer trainer;
  millrace_tune_options options = tune_options;
  options.on_run = [](void* user, const millrace_setting* setting, millrace_error*) {
    static_cast<Trainer*>(user)->told.push_back(*setting);
    return MILLRACE_OK + 0;
  };
  const Json result = trainer.tune(options);
  ASSERT_TRUE(result.is_object()) << result;
  EXPECT_THAT(result.at("chosen").at("workers").get<unsigned>(), AllOf(Ge(1U), Le(2U)));
  EXPECT_EQ(result.at("chosen").at("batch_size"), 4);
  EXPECT_EQ(result.at("goal").at("max_workers"), 2);
  EXPECT_EQ(result.at("goal").at("budget_seconds"), 1);
  EXPECT_THAT(result.at("own_step_ms").get<double>(), Ge(1));
  EXPECT_THAT(result.at("verdict").get<std::string>(), Not(StrEq("")));
  ASSERT_THAT(trainer.told.size(), Ge(2U));
  EXPECT_EQ(trainer.told.front().workers, 2U);
  EXPECT_EQ(trainer.told.front().batch_size, 4U);
  // A pipeline takes the choice as its options.
  const std::string chosen = Json{{"format", 1}, {"options", result.at("chosen")}}.dump();
  EXPECT_EQ(trainer.run.start(chosen.c_str()), MILLRACE_OK) << trainer.run.error.message;
}

TEST(CMeasure, DiagnoseNamesAStepThatSleeps) {
  Trainer trainer;
  trainer.step_time = 50ms;
  const Json result = testing::best_of_three(
      [&trainer] {
        const Json found = trainer.diagnose(diagnose_options);
        trainer.step_time *= 4;  // a longer step is less disturbed
        return found;
      },
      [](const Json& found) {
        return found.is_object() && found.at("verdict").at("stage") == "step";
      });
  ASSERT_TRUE(result.is_object()) << result;
  EXPECT_EQ(result.at("verdict").at("stage"), "step") << result.dump(1);
  EXPECT_EQ(result.at("options").at("rounds"), 2);
  EXPECT_THAT(result.at("cold_cache").at("missing").get<std::string>(), HasSubstr("no files"));
}

TEST(CMeasure, DiagnoseOpensTheDatasetByTheCallback) {
  Trainer trainer;
  trainer.run.setup.dataset = nullptr;
  millrace_diagnose_options options = diagnose_options;
  options.open = [](void* user, millrace_dataset** dataset, millrace_error* error) {
    auto* const self = static_cast<Trainer*>(user);
    ++self->opened;
    const auto callbacks = testing::numbers_dataset(self->run.numbers);
    return millrace_dataset_create(&callbacks, dataset, error);
  };
  const Json result = trainer.diagnose(options);
  EXPECT_TRUE(result.is_object()) << result;
  EXPECT_THAT(trainer.opened, Ge(3));
  trainer.last.reset();
  EXPECT_EQ(trainer.run.numbers.freed, trainer.opened);

  options.open = [](void*, millrace_dataset**, millrace_error* error) {
    return fail(MILLRACE_NOT_FOUND, "moved away", error);
  };
  EXPECT_EQ(trainer.diagnose(options), "not_found: open: moved away");
  options.open = [](void*, millrace_dataset**, millrace_error*) { return MILLRACE_OK + 0; };
  EXPECT_EQ(trainer.diagnose(options), "invalid_argument: the argument dataset of `open` is null");
  options.open = nullptr;
  EXPECT_EQ(trainer.diagnose(options), "invalid_argument: the workload has no dataset");
}

TEST(CMeasure, AFailureOfTheStepEndsTheMeasurement) {
  for (const int step : {1, 4, 20}) {
    Trainer trainer;
    trainer.failing_step = step;
    EXPECT_EQ(trainer.bench(100), "transform: step: out of memory");
    EXPECT_EQ(trainer.steps, step);
  }
  Trainer trainer;
  trainer.failing_step = 2;
  trainer.status = MILLRACE_BAD_RECORD;
  EXPECT_EQ(trainer.diagnose(diagnose_options), "internal: step: out of memory");
  trainer.steps = 0;
  trainer.status = MILLRACE_DEVICE;
  EXPECT_EQ(trainer.tune(tune_options), "device: step: out of memory");
}

TEST(CMeasure, RefusesWrongArguments) {
  Trainer trainer;
  char* json = nullptr;
  const auto message = [&](const millrace_workload* workload) {
    EXPECT_EQ(millrace_bench(workload, nullptr, &json, &trainer.run.error),
              MILLRACE_INVALID_ARGUMENT);
    return std::string(trainer.run.error.message);
  };
  EXPECT_EQ(message(nullptr), "the argument workload is null");
  millrace_workload wrong = trainer.workload;
  wrong.setup = nullptr;
  EXPECT_EQ(message(&wrong), "the argument workload->setup is null");
  wrong = trainer.workload;
  wrong.stream = 7;
  EXPECT_THAT(message(&wrong), HasSubstr("the stream is 7"));
  trainer.run.setup.options = R"({"format": 1, "options": {"batch_size": 0}})";
  EXPECT_EQ(message(&trainer.workload),
            "options: \"options.batch_size\" is 0, must be an integer in 1..1048576");
  trainer.run.setup.options = nullptr;

  millrace_bench_options bench{sizeof bench, 1, 0, -1};
  EXPECT_EQ(trainer.result(millrace_bench, &bench),
            "invalid_argument: duration is -1, must be in 0.001..86400");
  auto diagnose = diagnose_options;
  diagnose.rounds = 1;
  EXPECT_EQ(trainer.diagnose(diagnose), "invalid_argument: rounds is 1, must be in 2..1000000");
  diagnose.reserved = 7;
  EXPECT_EQ(trainer.diagnose(diagnose), "invalid_argument: reserved is 7; it must be 0");
  auto tune = tune_options;
  tune.p99_ms = -1;
  EXPECT_EQ(trainer.tune(tune), "invalid_argument: p99_ms is -1, must be in 0.001..3600000");
  trainer.workload.step = nullptr;
  EXPECT_EQ(trainer.diagnose(diagnose_options), "invalid_argument: diagnose needs a step");
}

}  // namespace
}  // namespace millrace
