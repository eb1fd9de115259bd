// SPDX-License-Identifier: Apache-2.0
//
// Tests of the stages of a converted field: their order, and their shares in report, trace and
// profiler.
#include <gmock/gmock.h>
#include <millrace/device_stage.h>
#include <millrace/host_device.h>
#include <millrace/mix_work.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loader/pipeline/user_code/fake_profiler.h"
#include "support/fake_dataset.h"
#include "support/fake_device.h"
#include "support/fake_transform.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::DeviceCall;
using testing::eventually;
using testing::FakeProfiler;
using testing::HookDevice;

constexpr std::size_t image_height = 5;
constexpr std::size_t image_width = 6;
constexpr std::size_t scaled_bytes = image_height * image_width * 3;
constexpr std::uint64_t run_batches = 5;
constexpr std::size_t run_batch_size = 8;

struct ScaleWork {
  static constexpr const char* kernel = "scale";
  const std::uint8_t* from;
  std::uint8_t* to;
  std::size_t bytes;
  int factor;
  void run_on_host() const {
    std::transform(from, from + bytes, to,
                   [this](int value) { return static_cast<std::uint8_t>(factor * value + 1); });
  }
};

/// Replaces each value v by factor * v + 1. Such stages give other results in another order.
class ScaleStage final : public DeviceStage {
 public:
  ScaleStage(const char* name, int factor) : name_(name), factor_(factor) {}
  const char* name() const override { return name_; }
  std::size_t scratch_bytes(std::size_t) const override { return 0; }
  void launch(Stream& stream, const Samples& samples) const override {
    stream.launch(ScaleWork{reinterpret_cast<const std::uint8_t*>(samples.from),
                            reinterpret_cast<std::uint8_t*>(samples.to),
                            samples.count * scaled_bytes, factor_});
  }

 private:
  const char* name_;
  int factor_;
};

/// Work of the device on the images, beside the conversion.
struct Works {
  std::vector<std::pair<const char*, int>> scales{};
  bool erases = false;
  bool mixes = false;
};

class PipelineImageStages : public ::testing::Test {
 protected:
  PipelineImageStages() {
    options_.batch_size = run_batch_size;
    options_.seed = 3;
    options_.epochs = 1;
    options_.conversion = Conversion{.mean = {0.5F, 0.25F, 0.125F}};
    options_.runtime = make_runtime({.workers = 2});
  }

  static std::shared_ptr<const Transform> transform(const Works& works) {
    std::vector<std::shared_ptr<const DeviceStage>> stages;
    for (const auto& [name, factor] : works.scales)
      stages.push_back(std::make_shared<ScaleStage>(name, factor));
    SampleSpec spec({{.name = "image",
                      .dtype = DType::uint8,
                      .shape = {image_height, image_width, 3},
                      .device_stages = std::move(stages)},
                     {.name = "flip", .dtype = DType::uint8, .shape = {}, .flipped_image = "image"},
                     {.name = "erase",
                      .dtype = DType::int32,
                      .shape = {MixWork::erase_numbers},
                      .erased_image = works.erases ? "image" : ""},
                     {.name = "mix",
                      .dtype = DType::int32,
                      .shape = {MixWork::mix_numbers},
                      .mixed_image = works.mixes ? "image" : ""}});
    return std::make_shared<testing::FunctionTransform>(
        std::move(spec), [](const Record&, Random& random, Sample& sample) {
          for (std::uint8_t& value : sample["image"].as<std::uint8_t>())
            value = static_cast<std::uint8_t>(random.below(256));
          sample["flip"].as<std::uint8_t>()[0] = static_cast<std::uint8_t>(random.below(2));
          std::ranges::copy(std::to_array<std::int32_t>({2, 1, 3, 2, 9, 99, 199, 0}),
                            sample["erase"].as<std::int32_t>().begin());
          const auto weight = static_cast<std::int32_t>(random.below(257));
          std::ranges::copy(std::to_array<std::int32_t>({weight, 1, 0, 2, 4}),
                            sample["mix"].as<std::int32_t>().begin());
          return Status::ok();
        });
  }

  Pipeline pipeline(const Works& works) const {
    return Pipeline(dataset_, transform(works), device_, options_);
  }

  static std::vector<std::vector<float>> images(Pipeline pipeline) {
    std::vector<std::vector<float>> images;
    while (const Batch batch = pipeline.next()) {
      const auto values = batch.images().as<float>();
      images.emplace_back(values.begin(), values.end());
    }
    return images;
  }

  /// Returns the batches of `works`, made from unchanged batches by the work's references.
  std::vector<std::vector<float>> expected(const Works& works) {
    const PipelineOptions options = options_;
    options_.conversion = std::nullopt;
    options_.debug.trace = nullptr;
    std::vector<std::vector<float>> images;
    const auto source = transform(works);
    const std::shared_ptr worker = source->make_worker();
    Pipeline plain(dataset_,
                   std::make_shared<testing::FunctionTransform>(
                       SampleSpec(without_works(source->spec())),
                       [source, worker](const Record& record, Random& random, Sample& sample) {
                         return worker->make(record, random, sample);
                       }),
                   std::make_shared<HostDevice>(), options_);
    while (const Batch batch = plain.next()) {
      const auto pixels = batch.images().as<std::uint8_t>();
      std::vector<std::uint8_t> made(pixels.begin(), pixels.end());
      for (const auto& scale : works.scales)
        ScaleWork{made.data(), made.data(), made.size(), scale.second}.run_on_host();
      MixWork{.images = made.data(),
              .flips = batch["flip"].as<std::uint8_t>().data(),
              .erases = works.erases ? batch["erase"].as<std::int32_t>().data() : nullptr,
              .mixes = works.mixes ? batch["mix"].as<std::int32_t>().data() : nullptr,
              .samples = batch.size(),
              .height = image_height,
              .width = image_width,
              .channels = 3}
          .run_on_host();
      ConversionWork{.source = made.data(),
                     .destination = images.emplace_back(made.size()).data(),
                     .flips = batch["flip"].as<std::uint8_t>().data(),
                     .samples = batch.size(),
                     .height = image_height,
                     .width = image_width,
                     .channels = 3,
                     .mean = options.conversion->mean,
                     .std = options.conversion->std}
          .run_on_host();
    }
    options_ = options;
    return images;
  }

  /// Returns the stages behind the copy, with their numbers of micro-batches.
  static std::vector<std::pair<std::string, std::uint64_t>> counts(const Report& report) {
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    for (const StageReport& stage : report.stages)
      if (stage.on_device && stage.name != "copy")
        counts.emplace_back(stage.name, stage.each.count);
    return counts;
  }

  std::vector<std::string> conversion_spans() const {
    std::vector<std::string> names;
    for (const TraceLane& lane : options_.debug.trace->lanes())
      if (lane.name == "conversions")
        for (const TraceSpan& span : lane.spans) names.emplace_back(span.name);
    return names;
  }

  /// Runs all batches on a device that counts its calls.
  std::shared_ptr<HookDevice> counted_run(const Works& works) {
    auto device = std::make_shared<HookDevice>(true);
    device_ = device;
    Pipeline all = pipeline(works);
    while (all.next()) continue;
    return device;
  }

  std::shared_ptr<testing::MemoryDataset> dataset_ =
      std::make_shared<testing::MemoryDataset>(run_batches * run_batch_size);
  std::shared_ptr<Device> device_ = std::make_shared<HostDevice>(HostDeviceOptions{.copies = true});
  PipelineOptions options_;

 private:
  static std::vector<FieldSpec> without_works(const SampleSpec& spec) {
    std::vector<FieldSpec> fields = spec.fields();
    for (FieldSpec& field : fields) field = {field.name, field.dtype, field.shape};
    return fields;
  }
};

TEST_F(PipelineImageStages, RunInTheirOrder) {
  const std::vector<std::vector<std::pair<const char*, int>>> scales = {
      {}, {{"a", 3}}, {{"a", 3}, {"b", 5}}, {{"a", 3}, {"b", 5}, {"c", 7}}};
  for (const auto& scale : scales)
    for (const auto& [erases, mixes] : {std::pair(false, false), std::pair(true, false),
                                        std::pair(false, true), std::pair(true, true)})
      for (const bool traced : {false, true}) {
        SCOPED_TRACE(::testing::Message() << scale.size() << " scales, erases " << erases
                                          << ", mixes " << mixes << ", traced " << traced);
        options_.debug.trace = traced ? std::make_shared<Trace>() : nullptr;
        const Works works{scale, erases, mixes};
        EXPECT_EQ(images(pipeline(works)), expected(works));
      }
}

TEST_F(PipelineImageStages, EachIsInReportTraceAndProfiler) {
  for (const bool mixes : {false, true}) {
    // Samples that are mixed need the whole batch.
    const std::size_t micro_batches = mixes ? 1 : 3;
    FakeProfiler profiler;
    device_ = std::make_shared<HookDevice>(true, std::function<void(DeviceCall)>{}, &profiler);
    options_.debug.trace = std::make_shared<Trace>();
    options_.slots.micro_batches = micro_batches;
    const std::vector<std::string> stages = {"a", "move", "b", mixes ? "erase+mix" : "erase",
                                             "convert"};
    {
      Pipeline all = pipeline({.scales = {{"a", 3}, {"b", 5}}, .erases = true, .mixes = mixes});
      while (all.next()) continue;
      std::vector<std::pair<std::string, std::uint64_t>> each;
      for (const std::string& stage : stages) each.emplace_back(stage, run_batches * micro_batches);
      EXPECT_TRUE(eventually([&] { return counts(all.report()) == each; }))
          << ::testing::PrintToString(counts(all.report()));
    }
    const std::vector<std::string> spans = conversion_spans();
    for (const std::string& stage : stages) {
      EXPECT_THAT(spans, ::testing::Contains(stage));
      EXPECT_EQ(profiler.count(stage).size(), run_batches) << stage;
      for (const auto& [batch, count] : profiler.count(stage)) EXPECT_EQ(count, micro_batches);
    }
    for (const FakeProfiler::Range& range : profiler.ranges()) {
      if (std::ranges::find(stages, range.name) == stages.end()) continue;
      EXPECT_EQ(range.outer, "upload") << range.name;
    }
    profiler.expect_all_ended();
  }
}

TEST_F(PipelineImageStages, AreNamedByTheirWork) {
  options_.debug.trace = std::make_shared<Trace>();
  for (const bool erases : {true, false}) {
    const char* const name = erases ? "erase" : "mix";
    Pipeline all = pipeline(Works{.erases = erases, .mixes = !erases});
    while (all.next()) continue;
    EXPECT_TRUE(eventually([&] {
      const std::vector<StageReport> stages = all.report().stages;
      return std::ranges::find(stages, name, &StageReport::name) != stages.end();
    })) << name;
  }
}

TEST_F(PipelineImageStages, OnlyATraceCostsEvents) {
  const Works plain;
  const Works mixing{.erases = true, .mixes = true};
  const auto calls = [&](const Works& works, bool traced) {
    options_.debug.trace = traced ? std::make_shared<Trace>() : nullptr;
    const auto device = counted_run(works);
    return std::pair(device->hooks().count(DeviceCall::record),
                     device->hooks().count(DeviceCall::convert));
  };
  const auto [events, launches] = calls(plain, false);
  EXPECT_EQ(launches, run_batches);
  EXPECT_EQ(calls(plain, true), std::pair(events, run_batches)) << "there is one stage only";
  EXPECT_EQ(calls(mixing, false), std::pair(events, 2 * run_batches));
  EXPECT_EQ(calls(mixing, true), std::pair(events + 2 * run_batches, 2 * run_batches));
}

}  // namespace
}  // namespace millrace
