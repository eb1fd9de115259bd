// SPDX-License-Identifier: Apache-2.0
//
// A sample of more than an image and a label: two images, a variable list of boxes, a float target.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <cstdint>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::SmallRun;

constexpr std::size_t most_boxes = 5;

std::size_t boxes_of(std::uint64_t record) { return record % (most_boxes + 2) % (most_boxes + 1); }
float box_value(std::uint64_t record, std::size_t place) {
  return static_cast<float>(record) + 0.25F * static_cast<float>(place + 1);
}

std::shared_ptr<testing::FunctionTransform> pair_transform() {
  SampleSpec spec({{"left", DType::uint8, {4, 6, 3}, false},
                   {"boxes", DType::float32, {most_boxes, 4}, true},
                   {"right", DType::uint8, {2, 2, 1}, false},
                   {"target", DType::float64, {}, false},
                   {"ids", DType::int32, {7}, true}});
  return std::make_shared<testing::FunctionTransform>(
      std::move(spec), [](const Record& record, Random&, Sample& sample) {
        const std::uint64_t index = record.index();
        std::ranges::fill(sample["left"].as<std::uint8_t>(), static_cast<std::uint8_t>(index));
        std::ranges::fill(sample["right"].as<std::uint8_t>(), static_cast<std::uint8_t>(index + 1));
        sample["target"].as<double>()[0] = static_cast<double>(index) / 3;
        // The whole field is written, also beyond its length: what is handed out there must be zero
        // all the same.
        const auto boxes = sample["boxes"].as<float>();
        for (std::size_t place = 0; place < boxes.size(); ++place)
          boxes[place] = box_value(index, place);
        sample.set_length(1, boxes_of(index));
        std::ranges::fill(sample["ids"].as<std::int32_t>(), -1);
        if (index % 2 == 0) sample.set_length(4, 7);  // else it is not told: empty
        return index % 9 == 4 ? Status::bad("no such pair") : Status::ok();
      });
}

TEST(PipelineSpec, TwoImagesVariableBoxesAndAFloatTarget) {
  for (const bool copies : {false, true})
    for (const std::size_t micro_batches : {1U, 3U}) {
      SmallRun run(50, copies);
      run.options.epochs = 3;
      run.options.slots.prefetch = 2;
      run.options.slots.micro_batches = micro_batches;
      run.options.bad_records = BadRecords::mark;
      Pipeline pipeline(run.dataset, pair_transform(), run.device, run.options);
      std::size_t samples = 0;
      while (const Batch batch = pipeline.next()) {
        ASSERT_EQ(batch["left"].shape, Shape({batch.size(), 4, 6, 3}));
        ASSERT_EQ(batch["boxes"].shape, Shape({batch.size(), most_boxes, 4}));
        ASSERT_EQ(batch["boxes.length"].shape, Shape({batch.size()}));
        const auto left = batch["left"].as<std::uint8_t>();
        const auto right = batch["right"].as<std::uint8_t>();
        const auto target = batch["target"].as<double>();
        const auto boxes = batch["boxes"].as<float>();
        const auto lengths = batch["boxes.length"].as<std::uint32_t>();
        const auto ids = batch["ids"].as<std::int32_t>();
        const auto id_lengths = batch["ids.length"].as<std::uint32_t>();
        for (std::size_t sample = 0; sample < batch.size(); ++sample, ++samples) {
          const std::uint64_t record = batch.indices()[sample];
          SCOPED_TRACE(record);
          const bool good = record % 9 != 4;
          ASSERT_EQ(batch.valid()[sample], good ? 1 : 0);
          EXPECT_EQ(target[sample], good ? static_cast<double>(record) / 3 : 0);
          EXPECT_TRUE(std::ranges::all_of(left.subspan(sample * 72, 72),
                                          [&](auto byte) { return byte == (good ? record : 0); }));
          EXPECT_TRUE(std::ranges::all_of(right.subspan(sample * 4, 4), [&](auto byte) {
            return byte == (good ? record + 1 : 0);
          }));
          const std::size_t length = good ? boxes_of(record) : 0;
          ASSERT_EQ(lengths[sample], length);
          for (std::size_t place = 0; place < most_boxes * 4; ++place)
            ASSERT_EQ(boxes[sample * most_boxes * 4 + place],
                      place < length * 4 ? box_value(record, place) : 0);
          ASSERT_EQ(id_lengths[sample], good && record % 2 == 0 ? 7U : 0U);
          EXPECT_TRUE(std::ranges::all_of(ids.subspan(sample * 7, 7), [&](auto id) {
            return id == (good && record % 2 == 0 ? -1 : 0);
          }));
        }
      }
      EXPECT_EQ(samples, 150U);
    }
}

TEST(PipelineSpec, PartsHaveTheirShareOfEveryField) {
  SmallRun run(16, true);
  run.options.slots.micro_batches = 4;
  run.options.bad_records = BadRecords::mark;
  Pipeline pipeline(run.dataset, pair_transform(), run.device, run.options);
  HostStream stream;
  while (const Batch batch = pipeline.next_in_parts(stream))
    for (const Part& part : batch.parts()) {
      stream.synchronize();
      EXPECT_EQ(part["boxes"].shape, Shape({part.size(), most_boxes, 4}));
      const auto lengths = part["boxes.length"].as<std::uint32_t>();
      const auto target = part["target"].as<double>();
      for (std::size_t sample = 0; sample < part.size(); ++sample) {
        const std::uint64_t record = part.indices()[sample];
        const bool good = record % 9 != 4;
        EXPECT_EQ(part.valid()[sample], good ? 1 : 0);
        EXPECT_EQ(lengths[sample], good ? boxes_of(record) : 0);
        EXPECT_EQ(target[sample], good ? static_cast<double>(record) / 3 : 0);
      }
    }
}

}  // namespace
}  // namespace millrace
