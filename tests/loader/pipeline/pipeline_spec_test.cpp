// SPDX-License-Identifier: Apache-2.0
//
// Tests of a sample with more than an image and a label: two images, a variable list of boxes, a
// float target.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::SmallRun;

constexpr std::size_t max_boxes = 5;

std::size_t boxes_of(std::uint64_t record) { return record % (max_boxes + 2) % (max_boxes + 1); }
float box_value(std::uint64_t record, std::size_t place) {
  return static_cast<float>(record) + 0.25F * static_cast<float>(place + 1);
}

std::shared_ptr<testing::FunctionTransform> pair_transform() {
  SampleSpec spec({{"left", DType::uint8, {4, 6, 3}, false},
                   {"boxes", DType::float32, {max_boxes, 4}, true},
                   {"right", DType::uint8, {2, 2, 1}, false},
                   {"target", DType::float64, {}, false},
                   {"ids", DType::int32, {7}, true}});
  return std::make_shared<testing::FunctionTransform>(
      std::move(spec), [](const Record& record, Random&, Sample& sample) {
        const std::uint64_t index = record.index();
        std::ranges::fill(sample["left"].as<std::uint8_t>(), static_cast<std::uint8_t>(index));
        std::ranges::fill(sample["right"].as<std::uint8_t>(), static_cast<std::uint8_t>(index + 1));
        sample["target"].as<double>()[0] = static_cast<double>(index) / 3;
        // Writes the whole field, also beyond its length. The batch must nevertheless have zeros
        // there.
        const auto boxes = sample["boxes"].as<float>();
        for (std::size_t place = 0; place < boxes.size(); ++place)
          boxes[place] = box_value(index, place);
        sample.set_length(1, boxes_of(index));
        std::ranges::fill(sample["ids"].as<std::int32_t>(), -1);
        if (index % 2 == 0) sample.set_length(4, 7);  // otherwise the length is not set: empty
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
        ASSERT_EQ(batch["boxes"].shape, Shape({batch.size(), max_boxes, 4}));
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
          for (std::size_t place = 0; place < max_boxes * 4; ++place)
            ASSERT_EQ(boxes[sample * max_boxes * 4 + place],
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
  while (const Batch batch = pipeline.next_in_micro_batches(stream))
    for (const MicroBatch& part : batch.micro_batches()) {
      stream.synchronize();
      EXPECT_EQ(part["boxes"].shape, Shape({part.size(), max_boxes, 4}));
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

TEST(PipelineSpec, FieldsOfSmallIntegersAndBool) {
  SmallRun run(20);
  const auto transform = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{"byte", DType::int8, {3}},
                  {"even", DType::boolean, {}},
                  {"short", DType::int16, {}},
                  {"mask", DType::uint16, {2}}}),
      [](const Record& record, Random&, Sample& sample) {
        const auto index = static_cast<std::int8_t>(record.index());
        std::ranges::fill(sample["byte"].as<std::int8_t>(), static_cast<std::int8_t>(-index));
        sample["even"].as<bool>()[0] = index % 2 == 0;
        sample["short"].as<std::int16_t>()[0] = static_cast<std::int16_t>(-1000 - index);
        std::ranges::fill(sample["mask"].as<std::uint16_t>(), std::uint16_t{60000});
        return Status::ok();
      });
  Pipeline pipeline(run.dataset, transform, run.device, run.options);
  while (const Batch batch = pipeline.next())
    for (std::size_t sample = 0; sample < batch.size(); ++sample) {
      const int record = static_cast<int>(batch.indices()[sample]);
      EXPECT_EQ(batch["byte"].as<std::int8_t>()[3 * sample + 2], -record);
      EXPECT_EQ(batch["even"].as<bool>()[sample], record % 2 == 0);
      EXPECT_EQ(batch["short"].as<std::int16_t>()[sample], -1000 - record);
      EXPECT_EQ(batch["mask"].as<std::uint16_t>()[2 * sample + 1], 60000);
    }
}

TEST(PipelineSpec, AConversionHasAValueForEachChannel) {
  SmallRun run(20);
  run.options.bad_records = BadRecords::mark;
  const auto convert = [&run](const Conversion& conversion) -> std::string {
    run.options.conversion = conversion;
    try {
      Pipeline pipeline(run.dataset, pair_transform(), run.device, run.options);
      EXPECT_TRUE(pipeline.next());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "converts";
  };
  for (const std::size_t values : {0U, 3U})
    EXPECT_EQ(convert({.field = "left", .mean_values = values, .std_values = values}), "converts");
  for (const std::size_t values : {0U, 1U})
    EXPECT_EQ(convert({.field = "right", .mean_values = values, .std_values = values}), "converts");
  EXPECT_THAT(convert({.field = "left", .mean = {0.5F}, .mean_values = 1}),
              HasSubstr("conversion.mean has 1 value, but \"left\" has 3 channels"));
  EXPECT_THAT(convert({.field = "left", .std_values = 4}),
              HasSubstr("conversion.std has 4 values, but \"left\" has 3 channels"));
  EXPECT_THAT(convert({.field = "right", .mean_values = 3}),
              HasSubstr("conversion.mean has 3 values, but \"right\" has 1 channel;"));
}

/// Adds a field and two stages to another transform.
class WeighingTransform final : public Transform {
 public:
  explicit WeighingTransform(std::shared_ptr<const Transform> inner) : inner_(std::move(inner)) {
    std::vector<FieldSpec> fields{{"weight", DType::float32, {}}};
    fields.insert(fields.end(), inner_->spec().fields().begin(), inner_->spec().fields().end());
    spec_ = SampleSpec(fields);
  }
  const SampleSpec& spec() const override { return spec_; }
  std::vector<std::string> stages() const override {
    std::vector<std::string> stages = inner_->stages();
    stages.insert(stages.begin(), "prepare");
    stages.emplace_back("weigh");
    return stages;
  }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(*this);
  }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const WeighingTransform& outer)
        : outer_(outer), inner_(outer.inner_->make_worker()) {}
    Status make(const Record& record, Random& random, Sample& sample) override {
      const SampleSpec& spec = outer_.inner_->spec();
      std::vector<Tensor> fields;
      for (const FieldSpec& field : spec.fields()) fields.push_back(sample[field.name]);
      Sample part(sample, spec, fields, 1);
      const Status status = inner_->make(record, random, part);
      sample.enter_stage(1 + outer_.inner_->stages().size());
      sample["weight"].as<float>()[0] = 0.5F;
      return status;
    }

   private:
    const WeighingTransform& outer_;
    std::unique_ptr<TransformWorker> inner_;
  };
  std::shared_ptr<const Transform> inner_;
  SampleSpec spec_;
};

TEST(PipelineSpec, StagesOfAWrappedTransformKeepTheirTimes) {
  using Seconds = std::map<std::string, double>;
  const auto make = [](int factor) {
    SmallRun run(20);
    const auto nap = [factor](const Record&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2 * factor));
      return Status::ok();
    };
    run.transform->on_begin = nap;
    run.transform->on_end = nap;
    const auto wrapping = std::make_shared<WeighingTransform>(run.transform);
    Pipeline pipeline(run.dataset, wrapping, run.device, run.options);
    while (const Batch batch = pipeline.next()) EXPECT_EQ(batch["weight"].as<float>()[0], 0.5F);
    Seconds seconds;
    for (const StageReport& stage : pipeline.report().stages)
      seconds[stage.name] = stage.busy_seconds;
    return seconds;
  };
  const Seconds seconds = testing::best_of_longer(make, [](const Seconds& found) {
    return found.at("prepare") < found.at("stamp") && found.at("weigh") < found.at("finish");
  });
  EXPECT_GE(seconds.at("stamp"), 0.04);
  EXPECT_GE(seconds.at("finish"), 0.04);
  EXPECT_LT(seconds.at("prepare"), seconds.at("stamp"));
  EXPECT_LT(seconds.at("weigh"), seconds.at("finish"));
}

}  // namespace
}  // namespace millrace
