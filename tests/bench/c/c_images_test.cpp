// SPDX-License-Identifier: Apache-2.0
//
// Pairs of images by a recipe's "images".
#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/c/numbers.h"

namespace millrace {
namespace {

using testing::elements;
using ::testing::HasSubstr;
using testing::NumbersRun;
using testing::taken;

/// The image of a record, 12 x 10 pixels that differ.
std::string ppm(std::uint64_t index) {
  std::string image = "P6 12 10 255\n";
  for (std::uint64_t n = 0; n < 360; ++n)
    image.push_back(static_cast<char>((index * 7 + n * n * 13) % 251));
  return image;
}

struct PairReader {
  std::string image;
  std::int64_t label = 0;
  millrace_field fields[4] = {};
};

/// Records whose fields "image", "same" and "own" have the same bytes; "own" of record 5 is cut.
millrace_dataset_callbacks pair_dataset() {
  millrace_dataset_callbacks callbacks{};
  callbacks.struct_bytes = sizeof callbacks;
  callbacks.name = "pairs";
  callbacks.size = 8;
  callbacks.make_reader = [](void*, void** reader, millrace_error*) -> millrace_status {
    *reader = new PairReader;
    return MILLRACE_OK;
  };
  callbacks.free_reader = [](void* reader) { delete static_cast<PairReader*>(reader); };
  callbacks.read = [](void* reader, std::uint64_t index, millrace_record* record,
                      millrace_error*) -> millrace_status {
    auto& one = *static_cast<PairReader*>(reader);
    one.image = ppm(index);
    one.label = static_cast<std::int64_t>(index);
    const std::size_t bytes = one.image.size();
    one.fields[0] = {"image", one.image.data(), bytes};
    one.fields[1] = {"same", one.image.data(), bytes};
    one.fields[2] = {"own", one.image.data(), index == 5 ? 20 : bytes};
    one.fields[3] = {"label", &one.label, sizeof one.label};
    record->fields = one.fields;
    record->n_fields = 4;
    return MILLRACE_OK;
  };
  return callbacks;
}

TEST(CImages, ARecipeMakesSeveralOfARecord) {
  NumbersRun run;
  const auto callbacks = pair_dataset();
  ASSERT_EQ(millrace_dataset_create(&callbacks, &run.setup.dataset, &run.error), MILLRACE_OK);
  ASSERT_EQ(millrace_transform_images(
                R"({"output": [8, 8], "ops": [{"op": "random_crop"}],
                    "images": {"same": {}, "own": {"draws": "own"}}})",
                &run.setup.transform, &run.error),
            MILLRACE_OK)
      << run.error.message;
  char* fields = nullptr;
  ASSERT_EQ(millrace_transform_fields(run.setup.transform, &fields, nullptr), MILLRACE_OK);
  EXPECT_THAT(taken(fields),
              HasSubstr(R"({"name":"own","dtype":"uint8","shape":[8,8,3],"variable":false})"));
  ASSERT_EQ(run.start(R"({"format": 1, "options": {"workers": 2, "batch_size": 8},
                          "run": {"order": "sequential", "epochs": 1, "bad_records": "mark"}})"),
            MILLRACE_OK)
      << run.error.message;
  millrace_batch* batch = nullptr;
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  const auto image = elements<std::uint8_t>(*run.field(batch, "image"));
  const auto own = elements<std::uint8_t>(*run.field(batch, "own"));
  EXPECT_EQ(elements<std::uint8_t>(*run.field(batch, "same")), image);
  EXPECT_NE(own, image);
  const auto valid = elements<std::uint8_t>(*run.field(batch, "valid"));
  EXPECT_THAT(valid, ::testing::ElementsAre(1, 1, 1, 1, 1, 0, 1, 1));
  EXPECT_EQ(std::vector<std::uint8_t>(own.begin() + 5 * 192, own.begin() + 6 * 192),
            std::vector<std::uint8_t>(192));
  char* report = nullptr;
  ASSERT_EQ(millrace_pipeline_report(run.pipeline, 0, &report, nullptr), MILLRACE_OK);
  EXPECT_THAT(taken(report), HasSubstr(R"(its field \"own\")"));
  millrace_batch_free(batch);
  millrace_transform_free(run.setup.transform);
  millrace_dataset_free(run.setup.dataset);
}

}  // namespace
}  // namespace millrace
