// SPDX-License-Identifier: Apache-2.0
//
// Tests of batches that the device converts: their contents, one copy per micro-batch, the order of
// waits, and refused options.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include "loader/pipeline/image_run.h"
#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::DeviceCall;
using testing::error_of;
using testing::eventually;
using ::testing::HasSubstr;
using testing::HookDevice;
using testing::ImageRun;
using testing::patience;

constexpr std::array imagenet_mean = Conversion::imagenet_mean;
constexpr std::array imagenet_std = Conversion::imagenet_std;

/// A conversion to `dtype`, which normalises if the type can.
Conversion to(DType dtype, ImageLayout layout) {
  Conversion conversion{.dtype = dtype, .layout = layout};
  if (dtype == DType::uint8) return conversion;
  conversion.mean = imagenet_mean;
  conversion.std = imagenet_std;
  return conversion;
}

class PipelineConversion : public ::testing::TestWithParam<std::tuple<DType, ImageLayout>> {};
INSTANTIATE_TEST_SUITE_P(All, PipelineConversion,
                         ::testing::Combine(::testing::Values(DType::uint8, DType::float16,
                                                              DType::bfloat16, DType::float32),
                                            ::testing::Values(ImageLayout::nhwc,
                                                              ImageLayout::nchw)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) == ImageLayout::nhwc ? "_nhwc"
                                                                                : "_nchw");
                         });

// 44 samples: the last batch has four of eight, so one of its three micro-batches is empty.
TEST_P(PipelineConversion, BatchesAreThoseOfTheReference) {
  for (const std::size_t micro_batches : {1U, 3U})
    for (const bool flips : {false, true})
      for (const std::size_t channels : {1U, 3U, 4U}) {
        SCOPED_TRACE(::testing::Message()
                     << micro_batches << " parts, " << channels << " channels, flips " << flips);
        ImageRun run(44, channels);
        run.flips = flips;
        run.options.slots.micro_batches = micro_batches;
        run.options.conversion = to(std::get<0>(GetParam()), std::get<1>(GetParam()));
        const auto expected = testing::expected_bytes(run);
        ASSERT_EQ(expected.size(), 6U);
        EXPECT_EQ(testing::all_bytes(run.pipeline()), expected);
      }
}

TEST_P(PipelineConversion, TheFieldHasTheShapeOfTheLayout) {
  ImageRun run(8);
  const auto [dtype, layout] = GetParam();
  run.options.conversion = to(dtype, layout);
  Pipeline pipeline = run.pipeline();
  const Batch batch = pipeline.next();
  EXPECT_EQ(batch.images().dtype, dtype);
  EXPECT_EQ(batch.images().shape,
            layout == ImageLayout::nhwc ? Shape({8, 5, 7, 3}) : Shape({8, 3, 5, 7}));
}

TEST(PipelineConversions, OfAFieldOfAnotherName) {
  ImageRun run(16);
  run.options.conversion =
      Conversion{.field = "picture", .dtype = DType::float32, .layout = ImageLayout::nhwc};
  const auto transform = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{"picture", DType::uint8, {1, 2, 1}}, {"index", DType::int32, {}}}),
      [](const Record& record, Random&, Sample& sample) {
        std::ranges::fill(sample["picture"].as<std::uint8_t>(),
                          static_cast<std::uint8_t>(record.index()));
        sample["index"].as<std::int32_t>()[0] = -static_cast<std::int32_t>(record.index());
        return Status::ok();
      });
  Pipeline pipeline(run.dataset, transform, run.device, run.options);
  while (const Batch batch = pipeline.next())
    for (std::size_t sample = 0; sample < batch.size(); ++sample) {
      EXPECT_EQ(batch["picture"].as<float>()[2 * sample + 1],
                static_cast<float>(batch.indices()[sample]) / 255);
      EXPECT_EQ(batch["index"].as<std::int32_t>()[sample],
                -static_cast<std::int32_t>(batch.indices()[sample]))
          << "the transform's own field was taken from it";
      EXPECT_EQ(batch["valid"].as<std::uint8_t>()[sample], 1);
    }
}

TEST(PipelineConversions, PartsAreConvertedOneByOne) {
  ImageRun run(44);
  run.flips = true;
  run.options.slots.micro_batches = 3;
  run.options.conversion = to(DType::float32, ImageLayout::nchw);
  const auto expected = testing::expected_bytes(run);
  Pipeline pipeline = run.pipeline();
  HostStream stream;
  while (const Batch batch = pipeline.next_in_micro_batches(stream)) {
    const auto& wanted = expected.at(batch.number())[1].second;
    for (const MicroBatch& part : batch.micro_batches()) {
      stream.synchronize();
      const Tensor images = part.images();
      const std::size_t sample_bytes = images.bytes() / part.size();
      EXPECT_EQ(
          std::memcmp(images.data, wanted.data() + part.first() * sample_bytes, images.bytes()), 0)
          << "part " << part.number() << " of batch " << batch.number();
    }
  }
}

TEST(PipelineConversions, APartIsOneCopy) {
  for (const std::size_t micro_batches : {1U, 3U})
    for (const bool converts : {false, true}) {
      SCOPED_TRACE(::testing::Message() << micro_batches << " parts, converted: " << converts);
      ImageRun run(44);
      const auto device = std::make_shared<HookDevice>(true);
      run.device = device;
      run.options.slots.micro_batches = micro_batches;
      if (converts) run.options.conversion = Conversion{};
      const auto expected = testing::expected_bytes(run);
      EXPECT_EQ(testing::all_bytes(run.pipeline()), expected);
      // The last batch has four samples, in two of its micro-batches.
      const std::uint64_t parts = micro_batches == 1 ? 6 : 5 * 3 + 2;
      EXPECT_EQ(device->hooks().count(DeviceCall::copy), parts);
      EXPECT_EQ(device->hooks().count(DeviceCall::convert), converts ? parts : 0);
      if (micro_batches == 1) {
        EXPECT_EQ(device->hooks().count(DeviceCall::copy_on_device), converts ? 2 * parts : 0)
            << "before and behind the image";
      }
    }
}

/// Counts copies on copy streams and conversions on convert streams, in the order of these streams.
struct Progress {
  std::atomic<int> copies{0};
  std::atomic<int> conversions{0};
  std::atomic<bool> staging_overwritten{false};

  void watch(testing::DeviceHooks& hooks) {
    hooks.before_copy = [this](HostStream& stream) {
      stream.launch([this] {
        // The staging slot holds the batch two before this one.
        if (++copies > conversions + 2) staging_overwritten = true;
      });
    };
    hooks.after_convert = [this](HostStream& stream) { stream.launch([this] { ++conversions; }); };
  }
};

TEST(PipelineConversions, ABusyTrainerDoesNotHoldUpCopies) {
  ImageRun run(400);
  const auto device = std::make_shared<HookDevice>(true);
  run.device = device;
  run.options.conversion = Conversion{};
  Progress progress;
  progress.watch(device->hooks());
  testing::Gate gate;
  const auto stream = device->trainer_stream();
  Pipeline pipeline = run.pipeline();
  const testing::OpensAtEnd opens(gate);
  Batch batch = pipeline.next(*stream, patience);
  stream->host().launch([&gate] { EXPECT_TRUE(gate.pass()); });
  batch.reset();
  // Batch 2 waits for the device slot of batch 0, which the step uses; batch 3 waits for any slot.
  // Both are copied nevertheless.
  EXPECT_TRUE(eventually([&] { return progress.copies == 4; }));
  EXPECT_EQ(progress.conversions, 2);
  gate.open();
  while (pipeline.next(*stream, patience)) continue;
  EXPECT_FALSE(progress.staging_overwritten);
}

TEST(PipelineConversions, ASlowConversionDoesNotHoldUpTheNextCopy) {
  ImageRun run(400);
  const auto device = std::make_shared<HookDevice>(true);
  run.device = device;
  run.options.conversion = Conversion{};
  Progress progress;
  progress.watch(device->hooks());
  testing::Gate gate;
  device->hooks().before_convert = [&gate](HostStream& stream) {
    stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
  };
  Pipeline pipeline = run.pipeline();
  const testing::OpensAtEnd opens(gate);
  EXPECT_TRUE(eventually([&] { return progress.copies == 2; }));
  EXPECT_EQ(progress.conversions, 0);
  gate.open();
  while (pipeline.next()) continue;
  EXPECT_FALSE(progress.staging_overwritten);
  EXPECT_EQ(progress.copies, 50);
}

// Copies are fast, while conversions and steps take uneven times. A staging or device slot that is
// used too early would show.
TEST(PipelineConversions, NothingIsOverwrittenEarly) {
  for (const std::size_t device_slots : {1U, 2U, 4U}) {
    ImageRun run(240);
    const auto device = std::make_shared<HookDevice>(true);
    run.device = device;
    run.flips = true;
    run.options.slots.device_slots = device_slots;
    run.options.conversion = to(DType::float16, ImageLayout::nchw);
    const auto expected = testing::expected_bytes(run);
    Progress progress;
    progress.watch(device->hooks());
    std::atomic<int> n{0};
    device->hooks().before_convert = [&n](HostStream& stream) {
      if (++n % 3 != 0) stream.launch([] { std::this_thread::sleep_for(2ms); });
    };
    const auto stream = device->trainer_stream();
    std::atomic<std::size_t> right{0};
    {
      Pipeline pipeline = run.pipeline();
      while (const Batch batch = pipeline.next(*stream, patience)) {
        if (batch.number() % 4 == 0) stream->host().step(3ms);
        const Tensor images = batch.images();
        stream->host().launch([&, images, number = batch.number()] {
          const auto& wanted = expected.at(number)[1].second;
          right += images.bytes() == wanted.size() &&
                           std::memcmp(images.data, wanted.data(), wanted.size()) == 0
                       ? 1
                       : 0;
        });
      }
      stream->synchronize();
    }
    EXPECT_EQ(right, expected.size());
    EXPECT_FALSE(progress.staging_overwritten);
  }
}

// The pipeline ends while the device still works: memory must stay until that work is done.
TEST(PipelineConversions, EndsWithConversionsUnderWay) {
  testing::Gate gate;
  ImageRun run(8);  // one batch, so that only its conversion is under way
  const auto device = std::make_shared<HookDevice>(true);
  run.device = device;
  run.options.conversion = Conversion{};
  run.options.debug.stop_timeout = 50ms;
  std::atomic<bool> under_way{false};
  device->hooks().before_convert = [&](HostStream& stream) {
    stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
    under_way = true;
  };
  Progress progress;
  progress.watch(device->hooks());
  std::string stuck;
  run.options.debug.on_stuck = [&stuck](std::string_view what) { stuck = what; };
  {
    Pipeline pipeline = run.pipeline();
    EXPECT_TRUE(eventually([&] { return under_way.load(); }));
    // Other threads may end late, and would be named first.
    EXPECT_TRUE(eventually([&] {
      return std::string_view(testing::error_of([&] { pipeline.stop(); }).what())
                 .find("does not end") != std::string_view::npos;
    }));
  }
  EXPECT_THAT(stuck, HasSubstr("does not end")) << "it did not wait for the conversion";
  gate.open();
  EXPECT_TRUE(eventually([&] { return progress.conversions > 0 && device.use_count() == 2; }))
      << "it is not let go";
}

TEST(PipelineConversions, AHostDeviceThatDoesNotCopyDoesSoThen) {
  ImageRun run(80);
  const auto device = std::make_shared<HookDevice>(false);
  run.device = device;
  run.options.slots.prefetch = 3;
  run.options.conversion = Conversion{};
  Pipeline pipeline = run.pipeline();
  const Report report = pipeline.report();
  EXPECT_EQ(report.memory.pinned_bytes, device->hooks().host_bytes);
  EXPECT_EQ(report.memory.device_bytes, device->hooks().device_bytes);
  EXPECT_EQ(report.memory.staging_bytes, 2 * report.memory.pinned_bytes / 3)
      << "two slots as the host's";
  EXPECT_GE(report.memory.device_bytes - report.memory.staging_bytes,
            2 * 8 * 5 * 7 * 3 * sizeof(float));
  while (pipeline.next()) continue;
  EXPECT_EQ(pipeline.report().memory.device_bytes, device->hooks().device_bytes);
}

TEST(PipelineConversions, WithoutStagingThereIsNone) {
  ImageRun run(80);
  run.device = std::make_shared<HostDevice>(HostDeviceOptions{.copies = true});
  Pipeline pipeline = run.pipeline();
  EXPECT_EQ(pipeline.report().memory.staging_bytes, 0U);
  while (pipeline.next()) continue;
  for (const StageReport& stage : pipeline.report().stages) EXPECT_NE(stage.name, "convert");
}

TEST(PipelineConversions, AreInReportAndTrace) {
  ImageRun run(44);
  run.options.slots.micro_batches = 2;
  run.options.conversion = Conversion{};
  run.options.debug.trace = std::make_shared<Trace>();
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  const auto conversions = [&]() -> std::uint64_t {
    for (const StageReport& stage : pipeline.report().stages)
      if (stage.name == "convert") return stage.each.count;
    return 0;
  };
  EXPECT_TRUE(eventually([&] { return conversions() == 12; })) << "two parts of six batches";
  std::size_t spans = 0;
  for (const TraceLane& lane : run.options.debug.trace->lanes())
    if (lane.name == "conversions")
      for (const TraceSpan& span : lane.spans) spans += std::string(span.name) == "convert" ? 1 : 0;
  EXPECT_GT(spans, 0U);
}

// ---- refused options

std::string refusal(Conversion conversion, bool flips = false) {
  ImageRun run(8);
  run.flips = flips;
  run.options.conversion = conversion;
  const Error error = error_of([&] { (void)run.pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  return error.what();
}

TEST(PipelineConversions, NameTheOptionThatIsWrong) {
  EXPECT_THAT(refusal({.field = "imag"}),
              ::testing::AllOf(HasSubstr("conversion.field is \"imag\""), HasSubstr("\"image\"")));
  EXPECT_THAT(refusal({.field = "label"}),
              HasSubstr("conversion.field is \"label\"; that field is int64"));
  EXPECT_THAT(refusal({.field = "flip"}), HasSubstr("conversion.field is \"flip\""));
  EXPECT_THAT(refusal({.field = "boxes"}), HasSubstr("varies in length"));
  EXPECT_THAT(refusal({.dtype = DType::float64}), HasSubstr("conversion.dtype is float64"));
  EXPECT_THAT(refusal({.layout = static_cast<ImageLayout>(7)}),
              HasSubstr("conversion.layout is 7"));
  EXPECT_THAT(refusal({.mean = {0, NAN}}), HasSubstr("conversion.mean[1] is nan"));
  EXPECT_THAT(refusal({.std = {1, 1, 0, 1}}), HasSubstr("conversion.std[2] is 0"));
  EXPECT_THAT(refusal({.std = {std::numeric_limits<float>::infinity(), 1, 1, 1}}),
              HasSubstr("conversion.std[0] is inf"));
  EXPECT_THAT(refusal({.dtype = DType::uint8, .mean = {0.5F}}),
              HasSubstr("conversion.mean[0] is 0.5"));
  EXPECT_THAT(refusal({.dtype = DType::uint8, .std = {1, 2, 1, 1}}),
              HasSubstr("conversion.std[1] is 2.0"));
}

TEST(PipelineConversions, OfFiveChannelsAreRefused) {
  ImageRun run(8, 5);
  run.options.conversion = Conversion{};
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(), HasSubstr("[5, 7, 5]"));
}

TEST(PipelineConversions, NeedDeviceSlots) {
  ImageRun run(8);
  run.options.slots.device_slots = 0;
  run.options.conversion = Conversion{};
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(), HasSubstr("device_slots is 0"));
}

TEST(PipelineConversions, FlipsThatNoConversionMakesAreRefused) {
  ImageRun run(8);
  run.flips = true;
  const Error error = error_of([&] { (void)run.pipeline(); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("flips of \"image\""),
                                             HasSubstr("conversion is not set")));
  const auto two = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{"image", DType::uint8, {5, 7, 3}},
                  {"mask", DType::uint8, {5, 7, 1}},
                  {.name = "flip", .dtype = DType::uint8, .shape = {}, .flipped_image = "image"}}),
      [](const Record&, Random&, Sample&) { return Status::ok(); });
  run.options.conversion = Conversion{.field = "mask"};
  EXPECT_THAT(error_of([&] { (void)Pipeline(run.dataset, two, run.device, run.options); }).what(),
              HasSubstr("applies to \"mask\""));
}

}  // namespace
}  // namespace millrace
