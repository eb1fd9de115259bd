// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/c_batch_transform.h>

#include <string>

#include "bench/c/numbers.h"

namespace millrace {
namespace {

using testing::elements;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using testing::NumbersRun;

constexpr const char* by_threes =
    R"({"format": 1, "options": {"workers": 1, "batch_size": 3},
        "run": {"order": "sequential", "epochs": 1}})";

/// State of the callback below.
struct Sums {
  millrace_status status = MILLRACE_OK;
  int freed = 0;
};

/// Negates the labels, and writes the sum of each sample's index and label before that as "sum".
millrace_batch_transform_callbacks negating(Sums& sums) {
  static constexpr millrace_field_spec added = {"sum", "int32", 0, {}, 0};
  millrace_batch_transform_callbacks callbacks{};
  callbacks.struct_bytes = sizeof callbacks;
  callbacks.user = &sums;
  callbacks.fields = &added;
  callbacks.n_fields = 1;
  callbacks.stage = "negate";
  callbacks.run = [](void* user, const millrace_made_batch* batch,
                     millrace_error* error) -> millrace_status {
    if (const auto status = static_cast<Sums*>(user)->status; status != MILLRACE_OK)
      return testing::fail(status, "no sum", error);
    const millrace_made_field& label = batch->fields[0];
    const millrace_made_field& list = batch->fields[1];
    const millrace_made_field& sum =
        *std::ranges::find(batch->fields, batch->fields + batch->n_fields, std::string("sum"),
                           [](const millrace_made_field& one) { return std::string(one.name); });
    if (label.name != std::string("label") || label.dtype != std::string("int64") ||
        label.rank != 1 || label.shape[0] != batch->size || list.rank != 2 || list.shape[1] != 3 ||
        millrace_random_bits(batch->random) == 0)
      return testing::fail(MILLRACE_INTERNAL, "other fields", error);
    for (std::size_t k = 0; k < batch->size; ++k) {
      std::int64_t& value = static_cast<std::int64_t*>(label.data)[k];
      static_cast<std::int32_t*>(sum.data)[k] =
          static_cast<std::int32_t>(batch->indices[k]) + static_cast<std::int32_t>(value);
      value = batch->valid[k] != 0 ? -value : 99;
    }
    return MILLRACE_OK;
  };
  callbacks.free_user = [](void* user) { ++static_cast<Sums*>(user)->freed; };
  return callbacks;
}

TEST(CBatchTransform, ChangesBatchesAndAddsFields) {
  Sums sums;
  NumbersRun run;
  const auto callbacks = negating(sums);
  ASSERT_EQ(millrace_batch_transform_create(&callbacks, &run.setup.batch_transform, &run.error),
            MILLRACE_OK);
  ASSERT_EQ(run.start(by_threes), MILLRACE_OK) << run.error.message;
  millrace_batch_transform_free(run.setup.batch_transform);
  EXPECT_EQ(sums.freed, 0);
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  EXPECT_THAT(elements<std::int64_t>(*run.field(batch, "label")), ElementsAre(0, -1, -2));
  EXPECT_THAT(elements<std::int32_t>(*run.field(batch, "sum")), ElementsAre(0, 2, 4));
  millrace_batch_free(batch);
  char* report = nullptr;
  ASSERT_EQ(millrace_pipeline_report(run.pipeline, 0, &report, nullptr), MILLRACE_OK);
  EXPECT_THAT(testing::taken(report), HasSubstr("\"negate\""));
  run.free_all();
  EXPECT_EQ(sums.freed, 1);
}

TEST(CBatchTransform, FailuresEndTheRun) {
  Sums sums{.status = MILLRACE_TRANSFORM};
  NumbersRun run;
  auto callbacks = negating(sums);
  ASSERT_EQ(millrace_batch_transform_create(&callbacks, &run.setup.batch_transform, nullptr),
            MILLRACE_OK);
  ASSERT_EQ(run.start(by_threes), MILLRACE_OK) << run.error.message;
  millrace_batch_transform_free(run.setup.batch_transform);
  millrace_batch* batch = nullptr;
  EXPECT_EQ(run.next(batch), MILLRACE_TRANSFORM);
  EXPECT_THAT(run.error.message, HasSubstr("negate of batch 0 failed: no sum"));
  callbacks.run = nullptr;
  millrace_batch_transform* transform = nullptr;
  EXPECT_EQ(millrace_batch_transform_create(&callbacks, &transform, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(run.error.message, "the argument callbacks->run is null");
  EXPECT_THAT(transform, Eq(nullptr));
}

TEST(CBatchTransform, MixRefusesAsCppDoes) {
  NumbersRun run;
  millrace_mix mix{sizeof mix, 10, 0, 0.2, 1, 0.5, 1};
  ASSERT_EQ(millrace_batch_transform_mix(&mix, &run.setup.batch_transform, &run.error), MILLRACE_OK)
      << run.error.message;
  EXPECT_NE(run.start(by_threes), MILLRACE_OK);
  EXPECT_THAT(run.error.message, HasSubstr("image"));
  millrace_batch_transform_free(run.setup.batch_transform);
  mix.p = 2;
  EXPECT_EQ(millrace_batch_transform_mix(&mix, &run.setup.batch_transform, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("\"p\" is 2"));
}

}  // namespace
}  // namespace millrace
