// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <millrace/detail/dlpack_versioned.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "bench/c/numbers.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using testing::elements;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::NumbersRun;
using testing::OwnedTensor;
using testing::taken;

constexpr const char* in_order =
    R"({"format": 1, "options": {"workers": 2, "batch_size": 4, "prefetch": 2},
        "run": {"order": "sequential", "epochs": 1}})";
constexpr const char* shuffled =
    R"({"format": 1, "options": {"workers": 2, "batch_size": 6}, "run": {"seed": 5, "epochs": 2}})";

TEST(CRun, GivesFieldsOfItsOwnDatasetAndTransform) {
  NumbersRun run;
  ASSERT_EQ(run.start(in_order), MILLRACE_OK) << run.error.message;
  std::uint64_t batches = 0;
  EXPECT_EQ(millrace_pipeline_batches_per_epoch(run.pipeline, &batches, nullptr), MILLRACE_OK);
  EXPECT_EQ(batches, 16u);
  EXPECT_EQ(millrace_pipeline_total_batches(run.pipeline, &batches, nullptr), MILLRACE_OK);
  EXPECT_EQ(batches, 16u);
  char* fields = nullptr;
  EXPECT_EQ(millrace_transform_fields(run.transform, &fields, nullptr), MILLRACE_OK);
  EXPECT_EQ(nlohmann::json::parse(taken(fields)), nlohmann::json::parse(R"([
      {"name": "label", "dtype": "int64", "shape": [], "variable": false},
      {"name": "list", "dtype": "uint32", "shape": [3], "variable": true},
      {"name": "list.length", "dtype": "uint32", "shape": [], "variable": false}])"));
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  EXPECT_THAT(elements<std::int64_t>(*run.field(batch, "label")), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(elements<std::uint32_t>(*run.field(batch, "list.length")), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(elements<std::uint32_t>(*run.field(batch, "list")),
              ElementsAre(0, 0, 0, 1, 0, 0, 2, 2, 0, 0, 0, 0));
  char* json = nullptr;
  EXPECT_EQ(millrace_batch_fields(batch, &json, nullptr), MILLRACE_OK);
  EXPECT_EQ(taken(json), R"(["label","list","list.length","index","valid"])");
  millrace_batch_facts facts{};
  facts.struct_bytes = sizeof facts;
  EXPECT_EQ(millrace_batch_describe(batch, &facts, &run.error), MILLRACE_OK) << run.error.message;
  EXPECT_EQ(facts.struct_bytes, sizeof facts);
  EXPECT_EQ(facts.size, 4u);
  EXPECT_EQ(facts.valid, 4u);
  EXPECT_EQ(facts.global_size, 4u);
  EXPECT_EQ(facts.number, 0u);
  EXPECT_EQ(facts.last_in_epoch, 0);
  millrace_batch_free(batch);
  EXPECT_EQ(run.labels_left().size(), 15u * 5);
}

TEST(CRun, GoesOnFromAStateWithTheSameBatches) {
  NumbersRun whole;
  ASSERT_EQ(whole.start(shuffled), MILLRACE_OK) << whole.error.message;
  for (int k = 0; k < 7; ++k) {
    millrace_batch* batch = nullptr;
    ASSERT_EQ(whole.next(batch), MILLRACE_OK);
    if (k == 6) {
      char* json = nullptr;
      EXPECT_EQ(millrace_batch_state(batch, &json, nullptr), MILLRACE_OK);
      char* of_pipeline = nullptr;
      EXPECT_EQ(millrace_pipeline_state(whole.pipeline, &of_pipeline, nullptr), MILLRACE_OK);
      EXPECT_STREQ(json, of_pipeline);
      millrace_text_free(of_pipeline);
      NumbersRun rest;
      const std::string state = taken(json);
      rest.setup.state = state.c_str();
      ASSERT_EQ(rest.start(shuffled), MILLRACE_OK) << rest.error.message;
      const auto labels = rest.labels_left();
      EXPECT_THAT(whole.labels_left(), ElementsAreArray(labels));
      EXPECT_GT(labels.size(), 64u);
      // A state of another seed is refused, unless `resume_anyway` is set.
      NumbersRun other;
      other.setup.state = state.c_str();
      EXPECT_EQ(other.start(R"({"format": 1, "options": {"batch_size": 6}, "run": {"seed": 6}})"),
                MILLRACE_INVALID_ARGUMENT);
      EXPECT_THAT(other.error.message, HasSubstr("seed was 5, here it is 6"));
      EXPECT_EQ(other.start(R"({"format": 1, "options": {"batch_size": 6},
                                "run": {"seed": 6, "resume_anyway": true}})"),
                MILLRACE_OK);
    }
    millrace_batch_free(batch);
  }
}

TEST(CRun, ReportsAsJson) {
  NumbersRun run;
  ASSERT_EQ(run.start(in_order), MILLRACE_OK) << run.error.message;
  run.labels_left();
  const auto report = [&](std::int32_t restart) {
    char* json = nullptr;
    EXPECT_EQ(millrace_pipeline_report(run.pipeline, restart, &json, &run.error), MILLRACE_OK);
    return nlohmann::json::parse(taken(json));
  };
  const nlohmann::json first = report(1);
  EXPECT_EQ(first["batches"], 16);
  EXPECT_EQ(first["samples"], 64);
  EXPECT_EQ(first["transform"], "numbers as they are");
  EXPECT_EQ(first["stages"][0]["name"], "read");
  EXPECT_EQ(first["stages"][1]["each"]["count"], 64);
  EXPECT_TRUE(first["verdict"]["text"].is_string());
  EXPECT_GT(first["memory"]["pinned_bytes"], 0);
  EXPECT_EQ(report(0)["batches"], 0);
}

TEST(CRun, TensorsOutliveAllHandles) {
  auto run = std::make_unique<NumbersRun>();
  ASSERT_EQ(run->start(in_order), MILLRACE_OK) << run->error.message;
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run->next(batch), MILLRACE_OK);
  const OwnedTensor label = run->field(batch, "label");
  DLManagedTensorVersioned* list = nullptr;
  EXPECT_EQ(millrace_batch_field_versioned(batch, "list", 1, &list, nullptr), MILLRACE_OK);
  millrace_batch_free(batch);
  run = nullptr;
  EXPECT_THAT(elements<std::int64_t>(*label), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(static_cast<const std::uint32_t*>(list->dl_tensor.data)[3], 1u);
  EXPECT_EQ(list->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  list->deleter(list);
}

TEST(CRun, UserDataGoesOnceWhenNothingUsesIt) {
  NumbersRun run;
  ASSERT_EQ(run.start(in_order), MILLRACE_OK) << run.error.message;
  millrace_dataset_free(run.dataset);
  millrace_transform_free(run.transform);
  EXPECT_EQ(run.numbers.freed, 0);
  run.labels_left();
  millrace_pipeline_free(run.pipeline);
  EXPECT_EQ(run.numbers.freed, 2);  // the dataset's and the transform's `user`
  EXPECT_EQ(run.numbers.readers, 0);
  EXPECT_EQ(run.numbers.workers, 0);
}

TEST(CRun, PipelinesShareARuntime) {
  millrace_error error{};
  millrace_runtime* runtime = nullptr;
  ASSERT_EQ(millrace_runtime_create(in_order, &runtime, &error), MILLRACE_OK) << error.message;
  NumbersRun train;
  NumbersRun eval;
  train.setup.runtime = eval.setup.runtime = runtime;
  ASSERT_EQ(train.start(in_order), MILLRACE_OK) << train.error.message;
  ASSERT_EQ(eval.start(in_order), MILLRACE_OK) << eval.error.message;
  millrace_runtime_free(runtime);
  EXPECT_EQ(train.labels_left(), eval.labels_left());
}

TEST(CRun, AHandleMayBeUsedAndFreedByManyThreads) {
  NumbersRun run;
  ASSERT_EQ(run.start(shuffled), MILLRACE_OK) << run.error.message;
  std::atomic<std::uint64_t> samples{0};
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 3; ++k)
      threads.emplace_back([&] {
        millrace_batch* batch = nullptr;
        while (millrace_pipeline_next(run.pipeline, 0, -1, &batch, nullptr) == MILLRACE_OK) {
          millrace_batch_facts facts{};
          facts.struct_bytes = sizeof facts;
          // Two threads use one handle while a third frees it.
          std::jthread other([&] {
            DLManagedTensor* tensor = nullptr;
            if (millrace_batch_field(batch, "label", &tensor, nullptr) == MILLRACE_OK)
              tensor->deleter(tensor);
          });
          if (millrace_batch_describe(batch, &facts, nullptr) == MILLRACE_OK) samples += facts.size;
          millrace_batch_free(batch);
        }
      });
  }
  EXPECT_EQ(samples, 128u);
}

TEST(CRun, StopEndsAWait) {
  NumbersRun run;
  ASSERT_EQ(run.start(R"({"format": 1, "options": {"batch_size": 4, "prefetch": 1}})"), MILLRACE_OK)
      << run.error.message;
  millrace_batch* held = nullptr;
  ASSERT_EQ(run.next(held), MILLRACE_OK);
  millrace_batch* none = nullptr;
  EXPECT_EQ(millrace_pipeline_next(run.pipeline, 0, 0.01, &none, &run.error), MILLRACE_TIMEOUT);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(run.error.status, MILLRACE_SLOTS_HELD);
  EXPECT_STREQ(millrace_status_name(run.error.status), "slots_held");
  EXPECT_EQ(run.next(none), MILLRACE_SLOTS_EXHAUSTED);
  std::jthread stops([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(millrace_pipeline_stop(run.pipeline, nullptr), MILLRACE_OK);
  });
  // Even with a huge timeout.
  EXPECT_EQ(millrace_pipeline_next(run.pipeline, 0, 1e300, &none, &run.error), MILLRACE_STOPPED);
  stops.join();
  EXPECT_EQ(millrace_pipeline_stop(run.pipeline, &run.error), MILLRACE_OK) << run.error.message;
  EXPECT_EQ(run.next(none), MILLRACE_STOPPED);
  millrace_batch_free(held);
}

TEST(CRun, OpensAndDecodesWithOptions) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "a.lmdb").string();
  {
    DatasetWriter writer(path);
    const std::string image = "P5 20 20 255\n" + std::string(400, 'x');
    const std::int64_t label = 3;
    const RecordField fields[] = {{"image", std::as_bytes(std::span(image))},
                                  {"label", std::as_bytes(std::span(&label, 1))}};
    writer.append(fields);
    writer.set_classes({"caf\xc3\xa9", "caf\xe9"});
    writer.finish();
  }
  millrace_error error{};
  millrace_dataset* dataset = nullptr;
  millrace_open_options options{};
  options.struct_bytes = sizeof options;
  options.format = "tars";
  EXPECT_EQ(millrace_dataset_open_with(path.c_str(), &options, &dataset, &error), MILLRACE_CORRUPT);
  options.format = "packed file";
  options.images = "records";
  EXPECT_EQ(millrace_dataset_open_with(path.c_str(), &options, &dataset, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("has no databases with names"));
  options.images = nullptr;
  options.no_map = options.no_checksums = options.no_hints = 1;
  ASSERT_EQ(millrace_dataset_open_with(path.c_str(), &options, &dataset, &error), MILLRACE_OK)
      << error.message;
  char* json = nullptr;
  EXPECT_EQ(millrace_dataset_describe(dataset, &json, nullptr), MILLRACE_OK);
  EXPECT_EQ(nlohmann::json::parse(taken(json))["classes"],
            nlohmann::json({"caf\xc3\xa9", "caf\\xe9"}));

  millrace_transform* transform = nullptr;
  millrace_decode_limits limits{};
  limits.struct_bytes = sizeof limits;
  limits.max_pixels = UINT64_MAX;
  EXPECT_EQ(millrace_transform_images_with("eval", &limits, &transform, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("max_pixels is 18446744073709551615"));
  for (const std::uint64_t max_pixels : {0UL, 399UL}) {
    limits.max_pixels = max_pixels;
    ASSERT_EQ(millrace_transform_images_with("eval", &limits, &transform, &error), MILLRACE_OK)
        << error.message;
    millrace_pipeline_setup setup{};
    setup.struct_bytes = sizeof setup;
    setup.dataset = dataset;
    setup.transform = transform;
    setup.options = R"({"format": 1, "options": {"workers": 1, "batch_size": 1}})";
    millrace_pipeline* pipeline = nullptr;
    ASSERT_EQ(millrace_pipeline_create(&setup, &pipeline, &error), MILLRACE_OK) << error.message;
    millrace_batch* batch = nullptr;
    EXPECT_EQ(millrace_pipeline_next(pipeline, 0, -1, &batch, &error),
              max_pixels == 0 ? MILLRACE_OK : MILLRACE_BAD_RECORD)
        << error.message;
    if (max_pixels != 0) {
      EXPECT_THAT(error.message, HasSubstr("at most 399 are decoded"));
    }
    millrace_batch_free(batch);
    millrace_pipeline_free(pipeline);
    millrace_transform_free(transform);
  }
  millrace_dataset_free(dataset);
}

TEST(CRun, GivesRecipesAsJson) {
  millrace_error error{};
  char* json = nullptr;
  ASSERT_EQ(millrace_recipe_json("eval", 112, &json, &error), MILLRACE_OK) << error.message;
  const std::string recipe = taken(json);
  const auto parsed = nlohmann::json::parse(recipe);
  EXPECT_EQ(parsed["output"], nlohmann::json({112, 112}));
  EXPECT_EQ(parsed["ops"][0]["size"], 128);
  ASSERT_EQ(millrace_recipe_json(recipe.c_str(), 0, &json, &error), MILLRACE_OK) << error.message;
  EXPECT_EQ(taken(json), recipe);
  EXPECT_EQ(millrace_recipe_json(recipe.c_str(), 64, &json, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(json, nullptr);
  EXPECT_THAT(error.message, HasSubstr("the size is 64, but the recipe is not a preset"));
  EXPECT_EQ(millrace_recipe_json("eval", UINT32_MAX, &json, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(millrace_recipe_json("evil", 0, &json, &error), MILLRACE_NOT_FOUND);
}

TEST(CRun, CopiesRawFields) {
  NumbersRun run;
  millrace_transform* raw = nullptr;
  EXPECT_EQ(millrace_transform_raw(run.dataset, nullptr, 0, &raw, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(millrace_transform_raw(nullptr, nullptr, 1, &raw, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(run.error.message, "the argument fields is null");
  // A number's 8 bytes, and room for two more values.
  millrace_raw_field field{{"number", "int16", 1, {6}, 1}, -5};
  field.spec.dtype = "int15";
  EXPECT_EQ(millrace_transform_raw(nullptr, &field, 1, &raw, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(
      run.error.message,
      "fields[0].spec.dtype is \"int15\" for the field \"number\", must be one of uint8, int32, "
      "uint32, int64, uint64, float32, float64, float16, bfloat16, int8, int16, uint16, bool");
  field.spec.dtype = "int16";
  ASSERT_EQ(millrace_transform_raw(nullptr, &field, 1, &raw, &run.error), MILLRACE_OK)
      << run.error.message;
  run.setup.transform = raw;
  ASSERT_EQ(run.start(in_order), MILLRACE_OK) << run.error.message;
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  EXPECT_THAT(elements<std::int16_t>(*run.field(batch, "number")),
              ElementsAre(0, 0, 0, 0, -5, -5, 1, 0, 0, 0, -5, -5,  //
                          2, 0, 0, 0, -5, -5, 3, 0, 0, 0, -5, -5));
  EXPECT_THAT(elements<std::uint32_t>(*run.field(batch, "number.length")), ElementsAre(4, 4, 4, 4));
  millrace_batch_free(batch);
  millrace_transform_free(raw);
}

TEST(CRun, ReadsTheRanksOfALauncher) {
  millrace_error error{};
  char* json = nullptr;
  const auto set = [](const char* rank) {
    EXPECT_EQ(setenv("RANK", rank, 1), 0);
    EXPECT_EQ(setenv("WORLD_SIZE", "3", 1), 0);
  };
  set("2");
  EXPECT_EQ(millrace_ranks_json(&json, &error), MILLRACE_OK) << error.message;
  const auto ranks = nlohmann::json::parse(taken(json));
  EXPECT_EQ(ranks["rank"], 2);
  EXPECT_EQ(ranks["world"], 3);
  EXPECT_EQ(ranks["local_rank"], 0);
  EXPECT_EQ(ranks["local_world"], 1);
  EXPECT_EQ(ranks["source"], "torchrun (RANK, WORLD_SIZE)");
  EXPECT_TRUE(ranks["warnings"].is_array());
  set("3");
  EXPECT_EQ(millrace_ranks_json(&json, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(json, nullptr);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
}

}  // namespace
}  // namespace millrace
