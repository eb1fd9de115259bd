// SPDX-License-Identifier: Apache-2.0
//
// Tests of debug.poison_slots, which finds bytes of a sample that the transform does not write.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "support/batch_contents.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::patience;
using testing::SmallRun;
using testing::take;

/// Fields of a sample: 96 bytes, a number, and up to 16 bytes of a varying length.
SampleSpec three_fields() {
  return SampleSpec({{"image", DType::uint8, {96}, false},
                     {"label", DType::int64, {}, false},
                     {"text", DType::uint8, {16}, true}});
}

/// A run whose transform writes zeros, except in bytes [first, end) of `field`. With one worker the
/// random bytes are the same each time, also those that are zero by chance.
Pipeline run_that_leaves(const std::string& field, std::size_t first, std::size_t end,
                         bool poison = true) {
  SmallRun run(160);
  run.workers(1);
  run.options.debug.poison_slots = poison;
  const auto write = [=](const std::string& name, const Tensor& tensor, std::size_t bytes) {
    auto* const data = static_cast<std::byte*>(tensor.data);
    const bool leaves = name == field;
    std::memset(data, 0, leaves ? first : bytes);
    if (leaves) std::memset(data + end, 0, bytes - end);
  };
  const auto transform = std::make_shared<testing::FunctionTransform>(
      three_fields(), [write](const Record&, Random&, Sample& sample) {
        write("image", sample["image"], 96);
        write("label", sample["label"], 8);
        sample.set_length(2, 10);
        write("text", sample["text"], 10);
        return Status::ok();
      });
  return Pipeline(run.dataset, transform, run.device, run.options);
}

std::string complaint(const std::string& field, std::size_t first, std::size_t end) {
  Pipeline pipeline = run_that_leaves(field, first, end);
  const Error error = error_of([&] {
    while (pipeline.next({.timeout = patience})) continue;
  });
  EXPECT_EQ(error.code(), ErrorCode::transform);
  EXPECT_TRUE(error.record().has_value());
  return error.what();
}

TEST(PipelinePoison, NamesTheFieldAndTheBytes) {
  EXPECT_THAT(complaint("image", 40, 60), HasSubstr("bytes 40 to 59 of its field \"image\""));
  EXPECT_THAT(complaint("label", 0, 8), HasSubstr("bytes 0 to 7 of its field \"label\""));
  EXPECT_THAT(complaint("text", 0, 9), HasSubstr("bytes 0 to 8 of its field \"text\""));
}

TEST(PipelinePoison, FindsFewBytesThatManySamplesLeave) {
  EXPECT_THAT(complaint("image", 95, 96), HasSubstr("byte 95 of its field \"image\""));
  EXPECT_THAT(complaint("label", 4, 8), HasSubstr("bytes 4 to 7 of its field \"label\""));
}

TEST(PipelinePoison, WithoutItNothingIsSaid) {
  Pipeline pipeline = run_that_leaves("image", 40, 60, false);
  while (pipeline.next({.timeout = patience})) continue;
}

TEST(PipelinePoison, SamplesThatAreWrittenWholeAreTheSame) {
  for (const bool in_turn : {false, true}) {
    SmallRun run(160);
    run.transform->in_turn = in_turn;
    Pipeline plain = run.pipeline();
    run.options.debug.poison_slots = true;
    Pipeline poisoned = run.pipeline();
    EXPECT_EQ(take(plain), take(poisoned));
  }
}

// Padding repeats samples: bytes that equal the random ones by chance would do so each time.
TEST(PipelinePoison, PaddingThatRepeatsASampleIsWritten) {
  for (const std::uint64_t records : {1U, 3U}) {
    SmallRun run(records);
    run.workers(1);
    run.options.batch_size = 64;
    run.options.last_batch = LastBatch::pad;
    run.options.debug.poison_slots = true;
    const auto zeros = std::make_shared<testing::FunctionTransform>(
        SampleSpec({{"image", DType::uint8, {4096}, false}}),
        [](const Record&, Random&, Sample& sample) {
          std::memset(sample["image"].data, 0, 4096);
          return Status::ok();
        });
    Pipeline pipeline(run.dataset, zeros, run.device, run.options);
    std::size_t batches = 0;
    while (pipeline.next({.timeout = patience})) ++batches;
    EXPECT_EQ(batches, 1U);
  }
}

// A transform may leave a bad sample unwritten; another record is made in its place.
TEST(PipelinePoison, ABadSampleNeedsNoBytes) {
  SmallRun run(160);
  run.options.debug.poison_slots = true;
  run.transform->on_begin = [](const Record& record) {
    if (record.index() % 10 == 3) throw Error(ErrorCode::bad_record, "torn");
  };
  for (const BadRecords policy : {BadRecords::mark, BadRecords::replace}) {
    run.options.bad_records = policy;
    Pipeline pipeline = run.pipeline();
    EXPECT_FALSE(take(pipeline).empty());
  }
}

}  // namespace
}  // namespace millrace
