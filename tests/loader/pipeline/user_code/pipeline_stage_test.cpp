// SPDX-License-Identifier: Apache-2.0
//
// Tests of fields whose first device stage takes packed inputs and marks samples.
#include <gmock/gmock.h>
#include <millrace/device_stage.h>
#include <millrace/device_work.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/samples/packed_sample.h"
#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::MemoryDataset;

constexpr std::size_t image_bytes = std::size_t{4} * 4 * 3;

std::uint8_t pixel_of(std::uint64_t record) { return static_cast<std::uint8_t>(3 * record + 1); }
/// Length of a record's packed input: below and above the field's bytes.
std::size_t length_of(std::uint64_t record) { return 1 + record * 37 % (2 * image_bytes); }

/// Makes images of packed inputs, whose bytes are all the image's pixel. Marks images of the value
/// 255, and samples without an input.
struct ExpandWork {
  static constexpr const char* kernel = "expand";

  DeviceStage::Samples samples;
  const std::uint8_t* packed = nullptr;
  const std::atomic<bool>* waits = nullptr;

  void run_on_host() const {
    while (waits != nullptr && waits->load()) std::this_thread::yield();
    for (std::size_t n = 0; n < samples.count; ++n) {
      const std::uint32_t offset = samples.offsets[n];
      const std::byte* const input = samples.from + std::size_t{offset} * DeviceStage::input_unit;
      std::byte* const image = samples.to + n * image_bytes;
      if (offset == DeviceStage::no_input || (packed[n] != 0 && *input == std::byte{255}))
        samples.marks[n] = 1;
      else if (packed[n] != 0)
        std::memset(image, static_cast<int>(*input), image_bytes);
      else
        std::memcpy(image, input, image_bytes);
    }
  }
};

class ExpandStage final : public DeviceStage {
 public:
  const char* name() const override { return "expand"; }
  std::size_t scratch_bytes(std::size_t) const override { return 0; }
  bool packed() const override { return true; }
  void launch(Stream& stream, const Samples& samples) const override {
    // The fields' list is valid during this call only.
    ExpandWork work{samples, reinterpret_cast<const std::uint8_t*>(samples.fields[1]), &waits};
    work.samples.fields = {};
    stream.launch(work);
  }
  mutable std::atomic<bool> waits{false};
};

/// Adds the record of the sample with which the batch's samples are paired.
class PairTransform final : public BatchTransform {
 public:
  std::vector<FieldSpec> fields(const SampleSpec&) const override {
    return {{"partner", DType::uint64, {}}};
  }
  void run(MadeBatch& batch, Random&) const override {
    const auto partners = batch["partner"].as<std::uint64_t>();
    for (std::size_t n = 0; n < batch.size(); ++n) {
      EXPECT_EQ(partners[n], 0U);
      partners[n] = batch.indices()[batch.size() - 1 - n];
    }
  }
};

/// Packs all samples but every seventh. The device cannot make those of `marked` records.
class ExpandTransform final : public Transform {
 public:
  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(*this);
  }
  std::shared_ptr<const BatchTransform> batch_transform() const override { return pairs; }
  std::shared_ptr<const BatchTransform> pairs;
  std::shared_ptr<ExpandStage> stage = std::make_shared<ExpandStage>();
  std::function<std::size_t(std::uint64_t)> length = length_of;
  std::function<bool(std::uint64_t)> marked = [](std::uint64_t) { return false; };
  /// Status of a sample that a worker makes, and of one whose input was just packed.
  std::function<Status(std::uint64_t)> on_make = [](std::uint64_t) { return Status::ok(); };
  std::function<Status(std::uint64_t)> on_packed = [](std::uint64_t) { return Status::ok(); };

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const ExpandTransform& of) : of_(of) {}
    Status make(const Record& record, Random&, Sample& sample) override {
      const std::uint64_t index = record.index();
      std::uint8_t packed = 0;
      if (index % 7 != 0) {
        const auto room = sample.packed_room(0, of_.length(index));
        packed = room.empty() ? 0 : 1;
        if (packed != 0)
          std::memset(room.data(), of_.marked(index) ? 255 : pixel_of(index), room.size());
      }
      *static_cast<std::uint8_t*>(sample[1].data) = packed;
      if (packed != 0) return of_.on_packed(index);
      std::memset(sample[0].data, pixel_of(index), image_bytes);
      return of_.on_make(index);
    }

   private:
    const ExpandTransform& of_;
  };

  SampleSpec spec_{{{"image", DType::uint8, {4, 4, 3}, false, {}, {}, {}, {stage}},
                    {"packed", DType::uint8, {}}}};
};

class PipelineStage : public ::testing::Test {
 protected:
  PipelineStage() {
    options_.batch_size = 12;
    options_.seed = 5;
    options_.epochs = 2;
    options_.conversion = Conversion{.dtype = DType::uint8, .layout = ImageLayout::nhwc};
    options_.runtime = make_runtime({.workers = 2});
    transform_->marked = [](std::uint64_t record) { return record % 5 == 2; };
  }

  struct Made {
    std::uint64_t record;
    std::uint8_t pixel;
    std::uint8_t valid;
    friend bool operator==(const Made&, const Made&) = default;
  };

  /// Takes all batches. Every image must have one value.
  std::vector<Made> run() {
    Pipeline pipeline(dataset_, transform_, device_, options_);
    std::vector<Made> made;
    HostStream stream;
    while (const Batch batch = pipeline.next(stream))
      for (const MicroBatch& part : batch.micro_batches()) {
        stream.synchronize();
        const auto images = part["image"].as<std::uint8_t>();
        for (std::size_t n = 0; n < part["index"].shape[0]; ++n) {
          const auto image = images.subspan(n * image_bytes, image_bytes);
          EXPECT_EQ(std::ranges::count(image, image[0]), image_bytes);
          made.push_back({part["index"].as<std::uint64_t>()[n], image[0],
                          part["valid"].as<std::uint8_t>()[n]});
        }
      }
    report_ = pipeline.report();
    return made;
  }

  void expect_all_right(const std::vector<Made>& made) {
    EXPECT_EQ(made.size(), 2 * dataset_->size());
    for (const Made& one : made) EXPECT_EQ(one, (Made{one.record, pixel_of(one.record), 1}));
  }

  std::shared_ptr<MemoryDataset> dataset_ = std::make_shared<MemoryDataset>(80);
  std::shared_ptr<ExpandTransform> transform_ = std::make_shared<ExpandTransform>();
  std::shared_ptr<Device> device_ = std::make_shared<HostDevice>(HostDeviceOptions{.copies = true});
  PipelineOptions options_;
  Report report_;
};

TEST_F(PipelineStage, SamplesAreThoseOfWorkers) {
  expect_all_right(run());
  EXPECT_THAT(report_.warnings, ::testing::Contains(HasSubstr("made again on the host")));
  options_.slots.micro_batches = 5;
  expect_all_right(run());
}

TEST_F(PipelineStage, OnlyUsedBytesAreCopied) {
  transform_->length = [](std::uint64_t) { return image_bytes; };
  expect_all_right(run());
  const std::uint64_t of_long_inputs = report_.copied_bytes;
  transform_->length = [](std::uint64_t) { return 1; };
  expect_all_right(run());
  const std::uint64_t packed = 2 * (80 - 12);  // records 0, 7 ... 77 are not
  EXPECT_EQ(of_long_inputs - report_.copied_bytes,
            packed * (image_bytes - DeviceStage::input_unit));
}

TEST_F(PipelineStage, TheReportHasTheStagesTime) {
  options_.slots.micro_batches = 3;
  options_.debug.trace = std::make_shared<Trace>();
  run();
  std::vector<std::string> names;
  for (const StageReport& stage : report_.stages) names.push_back(stage.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("read", "transform", "copy", "expand", "convert", "trainer"));
  const StageReport& stage = report_.stages[3];
  EXPECT_TRUE(stage.on_device);
  // The last batches' times may not be known yet.
  EXPECT_GE(stage.each.count, 3 * (report_.batches / 2));
  EXPECT_LE(stage.each.count, 3 * report_.batches);
  EXPECT_GT(stage.busy_seconds, 0);
  std::ostringstream spans;
  options_.debug.trace->write_json(spans);
  EXPECT_THAT(spans.str(), HasSubstr("\"expand\""));
}

TEST_F(PipelineStage, AMarkedSampleMayBeBad) {
  transform_->on_make = [](std::uint64_t record) {
    return record % 5 == 2 && record % 7 != 0 ? Status::bad("no end of image") : Status::ok();
  };
  const auto is_bad = [](std::uint64_t record) { return record % 5 == 2 && record % 7 != 0; };
  options_.bad_records = BadRecords::mark;
  std::size_t bad = 0;
  for (const Made& one : run()) {
    bad += is_bad(one.record) ? 1 : 0;
    EXPECT_EQ(one, (is_bad(one.record) ? Made{one.record, 0, 0}
                                       : Made{one.record, pixel_of(one.record), 1}));
  }
  EXPECT_EQ(report_.bad_records, bad);

  options_.bad_records = BadRecords::replace;
  const std::vector<Made> replaced = run();
  expect_all_right(replaced);
  for (const Made& one : replaced) EXPECT_FALSE(is_bad(one.record));
  options_.runtime = make_runtime({.workers = 1});
  EXPECT_TRUE(run() == replaced) << "replacements depend on the workers";

  options_.bad_records = BadRecords::fail;
  const Error error = error_of([&] { run(); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_THAT(error.what(), HasSubstr("no end of image"));
}

TEST_F(PipelineStage, ABatchTransformSeesTheReplacementsOfMarkedSamples) {
  transform_->pairs = std::make_shared<PairTransform>();
  transform_->on_make = [](std::uint64_t record) {
    return record % 5 == 2 && record % 7 != 0 ? Status::bad("no end of image") : Status::ok();
  };
  options_.bad_records = BadRecords::replace;
  Pipeline pipeline(dataset_, transform_, device_, options_);
  HostStream stream;
  while (const Batch batch = pipeline.next(stream)) {
    stream.synchronize();
    const auto indices = batch["index"].as<std::uint64_t>();
    const auto partners = batch["partner"].as<std::uint64_t>();
    for (std::size_t n = 0; n < batch.size(); ++n) {
      EXPECT_EQ(indices[n], batch.indices()[n]);
      EXPECT_EQ(partners[n], indices[batch.size() - 1 - n]);
    }
  }
  EXPECT_GT(pipeline.report().bad_records, 0U);
}

TEST_F(PipelineStage, APaddingSampleIsMadeAgainLikeOthers) {
  options_.last_batch = LastBatch::pad;
  std::size_t padding = 0;
  for (const Made& one : run()) {
    padding += one.valid == 0 ? 1 : 0;
    EXPECT_EQ(one.pixel, pixel_of(one.record)) << one.record;
  }
  EXPECT_GT(padding, 0U);
  EXPECT_EQ(report_.bad_records, 0U);
}

TEST_F(PipelineStage, ASampleMayFailAfterItWasPacked) {
  transform_->on_packed = [](std::uint64_t record) {
    return record % 3 == 0 ? Status::bad("too late") : Status::ok();
  };
  options_.bad_records = BadRecords::replace;
  expect_all_right(run());
  EXPECT_GT(report_.bad_records, 0U);
  options_.bad_records = BadRecords::mark;
  transform_->on_make = transform_->on_packed;
  std::size_t bad = 0;
  for (const Made& one : run()) {
    bad += one.record % 3 == 0 ? 1 : 0;
    EXPECT_EQ(one, (one.record % 3 == 0 ? Made{one.record, 0, 0}
                                        : Made{one.record, pixel_of(one.record), 1}));
  }
  EXPECT_EQ(report_.bad_records, bad);
}

TEST_F(PipelineStage, TheRunEndsWhileTheStageDoesNot) {
  transform_->stage->waits = true;
  Pipeline pipeline(dataset_, transform_, device_, options_);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::thread later([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    transform_->stage->waits = false;
  });
  pipeline.stop();
  later.join();
}

TEST_F(PipelineStage, OtherFieldsHaveNoRoom) {
  const SampleSpec spec({{"byte", DType::uint8, {8}}});
  std::vector<std::byte> bytes(8);
  const std::vector<Tensor> places{{bytes.data(), DType::uint8, {8}}};
  Sample sample(spec, places);
  EXPECT_THAT(error_of([&] { sample.packed_room(0, 4); }).what(), HasSubstr("field \"byte\""));
}

TEST(PackedSample, LeavesItsRestToLongerOnes) {
  alignas(16) std::byte memory[3 * 32];
  PackedRoom room;
  PackedSample sample(20);  // a share of 32 bytes
  const auto pack = [&](std::size_t bytes, std::size_t least = 0) {
    sample.begin(room, memory);
    sample.make(false);
    return sample.pack(bytes, least).size();
  };
  EXPECT_EQ(pack(40), 0U) << "nothing is left yet";
  EXPECT_EQ(pack(5), 5U);
  EXPECT_EQ(sample.end(), 0U);
  EXPECT_EQ(pack(49), 0U) << "48 bytes are free for it";
  EXPECT_EQ(pack(48), 48U);
  EXPECT_EQ(sample.end(), 1U);
  EXPECT_EQ(pack(33), 0U);
  EXPECT_EQ(pack(32), 32U);
  EXPECT_EQ(sample.end(), 4U);
  EXPECT_EQ(room.used(), 96U);
  room.clear();
  EXPECT_EQ(room.used(), 0U);
  EXPECT_EQ(pack(3, 32), 3U) << "counts as 32 bytes";
  EXPECT_EQ(sample.end(), 0U);
  EXPECT_EQ(pack(33), 0U);
}

TEST(PackedSample, HasNoPlaceForInputsWithoutBytesOrOfAbsurdOnes) {
  alignas(16) std::byte memory[2 * 32];
  PackedRoom room;
  PackedSample sample(32);
  sample.begin(room, memory);
  sample.make(false);
  for (const std::size_t bytes : {std::size_t{0}, SIZE_MAX - 3, SIZE_MAX})
    EXPECT_TRUE(sample.pack(bytes, 0).empty());
  for (const std::size_t least : {SIZE_MAX - 3, SIZE_MAX})
    EXPECT_TRUE(sample.pack(4, least).empty());
  EXPECT_EQ(sample.end(), 0U) << "the field itself has a place";
  EXPECT_EQ(room.used(), 32U);
}

TEST(PackedSample, UsesThePlaceOfAFailedAttemptAgain) {
  alignas(16) std::byte memory[2 * 32];
  PackedRoom room;
  PackedSample sample(32);
  sample.begin(room, memory);
  sample.make(false);
  EXPECT_EQ(sample.pack(20, 0).data(), memory);
  sample.make(false);  // the first attempt failed
  EXPECT_EQ(sample.pack(17, 0).data(), memory);
  sample.make(false);
  EXPECT_TRUE(sample.pack(40, 0).empty());
  EXPECT_EQ(sample.end(), 0U) << "the field fits in the first place";
  sample.begin(room, memory);
  sample.make(false);
  EXPECT_EQ(sample.pack(3, 0).data(), memory + 32);
  sample.make(true);
  EXPECT_TRUE(sample.pack(3, 0).empty()) << "a fixed sample is not packed";
  EXPECT_EQ(sample.end(), DeviceStage::no_input) << "16 of 32 bytes are left";
}

}  // namespace
}  // namespace millrace
