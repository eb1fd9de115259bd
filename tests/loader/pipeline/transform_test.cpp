// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/transform.h>

#include <array>
#include <atomic>
#include <thread>

#include "pipeline/samples/sample_context.h"
#include "support/fake_transform.h"

namespace millrace {
namespace {

using Clock = SampleContext::Clock;

/// A sample of one fixed and one variable field, in memory of its own.
struct SampleMemory {
  SampleSpec spec{{{"image", DType::uint8, {4}, false}, {"boxes", DType::float32, {3, 2}, true}}};
  std::array<std::uint8_t, 4> image{};
  std::array<float, 6> boxes{};
  std::uint32_t length = 77;
  std::array<Tensor, 3> fields{Tensor{image.data(), DType::uint8, Shape{4}},
                               Tensor{boxes.data(), DType::float32, Shape{3, 2}},
                               Tensor{&length, DType::uint32, Shape{}}};
};

TEST(Sample, GivesFieldsByPlaceAndByName) {
  SampleMemory memory;
  Sample sample(memory.spec, memory.fields);
  EXPECT_EQ(sample[0].data, memory.image.data());
  EXPECT_EQ(sample["boxes"].data, memory.boxes.data());
  sample["image"].as<std::uint8_t>()[2] = 9;
  EXPECT_EQ(memory.image[2], 9);
  EXPECT_THROW((void)sample["imgae"], Error);
}

TEST(Sample, HasLengthZeroUntilItIsTold) {
  SampleMemory memory;
  Sample sample(memory.spec, memory.fields);
  EXPECT_EQ(memory.length, 0U);
  sample.set_length(1, 3);
  EXPECT_EQ(memory.length, 3U);
  sample.set_length(1, 1);
  EXPECT_EQ(memory.length, 1U);
}

TEST(Sample, RefusesALengthThatDoesNotFit) {
  SampleMemory memory;
  Sample sample(memory.spec, memory.fields);
  for (const auto& [field, length] : {std::pair<std::size_t, std::size_t>{1, 4}, {0, 1}}) try {
      sample.set_length(field, length);
      ADD_FAILURE() << "field " << field << " took the length " << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  EXPECT_EQ(memory.length, 0U);
}

TEST(Sample, RefusesAStageThatTheTransformHasNot) {
  SampleMemory memory;
  std::array<std::uint64_t, 2> stage_ns{};
  Sample sample(memory.spec, memory.fields, stage_ns);
  Sample part(sample, memory.spec, memory.fields, 1);
  for (const std::size_t stage : {std::size_t{2}, std::size_t{1} << 40, SIZE_MAX}) {
    EXPECT_THROW(sample.enter_stage(stage), Error) << stage;
    EXPECT_THROW(part.enter_stage(stage), Error) << stage;
  }
  sample.enter_stage(1);
}

TEST(Sample, TellsTheTimeOfItsStagesApart) {
  SampleMemory memory;
  std::array<std::uint64_t, 2> stage_ns{100, 0};
  Sample sample(memory.spec, memory.fields, stage_ns);
  std::this_thread::sleep_for(std::chrono::milliseconds(4));
  sample.enter_stage(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sample.enter_stage(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(4));
  SampleContext::finish(sample);
  EXPECT_GE(stage_ns[0], 8'000'100U);
  EXPECT_GE(stage_ns[1], 2'000'000U);
}

TEST(Sample, HasNoTimeWhileItIsPaused) {
  SampleMemory memory;
  std::array<std::uint64_t, 2> stage_ns{};
  std::atomic<std::size_t> now_in{9};
  SampleContext context(&now_in);
  Sample sample = context.begin(memory.spec, memory.fields, stage_ns, 0, 0, Clock::now());
  sample.pause();
  EXPECT_EQ(now_in, SampleContext::paused_stage);
  const auto before = stage_ns;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sample.pause();
  EXPECT_EQ(stage_ns, before);
  sample.go_on();
  EXPECT_EQ(now_in, 0U);
  std::this_thread::sleep_for(std::chrono::milliseconds(4));
  sample.pause(2);
  EXPECT_GE(stage_ns[0], before[0] + 2'000'000U) << "half of it";
  sample.go_on();
  sample.enter_stage(1);
  EXPECT_EQ(stage_ns[1], 0U);
  SampleContext::finish(sample);
}

TEST(Sample, ShowsItsStageToOtherThreads) {
  SampleMemory memory;
  std::atomic<std::size_t> now_in{9};
  SampleContext context(&now_in);
  Sample sample = context.begin(memory.spec, memory.fields, {}, 0, 0, Clock::now());
  EXPECT_EQ(now_in, 0U);
  sample.enter_stage(1);
  EXPECT_EQ(now_in, 1U);
  SampleContext::finish(sample);
}

TEST(Transform, HasOneStageUnlessItSaysMore) {
  const testing::FunctionTransform transform(
      SampleMemory().spec, [](const Record&, Random&, Sample&) { return Status::ok(); });
  EXPECT_THAT(transform.stages(), ::testing::ElementsAre("transform"));
}

}  // namespace
}  // namespace millrace
