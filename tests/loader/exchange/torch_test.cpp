// SPDX-License-Identifier: Apache-2.0
#include <ATen/DLConvertor.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <millrace/dlpack.h>
#include <millrace/torch.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exchange/every_dtype.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::EveryDtype;
using ::testing::HasSubstr;
using testing::SmallRun;

Pipeline run_of_every_dtype() {
  return {std::make_shared<testing::MemoryDataset>(24),
          std::make_shared<EveryDtype>(),
          std::make_shared<HostDevice>(),
          {.batch_size = 8, .order = Order::sequential()}};
}

/// Pictures of 4 x 5 pixels and 3 channels with consecutive bytes.
class Pictures final : public Transform {
 public:
  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>();
  }

 private:
  class Worker final : public TransformWorker {
    Status make(const Record& record, Random&, Sample& sample) override {
      auto next = static_cast<std::uint8_t>(record.index() * 60);
      for (std::uint8_t& byte : sample["image"].as<std::uint8_t>()) byte = next++;
      return Status::ok();
    }
  };
  SampleSpec spec_{{{.name = "image", .dtype = DType::uint8, .shape = {4, 5, 3}}}};
};

TEST(Torch, ShowsEachDtypeWithoutACopy) {
  Pipeline pipeline = run_of_every_dtype();
  const Batch batch = pipeline.next();
  const std::vector<std::pair<std::string, at::ScalarType>> types = {
      {"bool", at::kBool},        {"uint8", at::kByte},     {"int8", at::kChar},
      {"int16", at::kShort},      {"int32", at::kInt},      {"int64", at::kLong},
      {"float32", at::kFloat},    {"float64", at::kDouble}, {"float16", at::kHalf},
      {"bfloat16", at::kBFloat16}};
  for (const auto& [name, type] : types) {
    SCOPED_TRACE(name);
    const at::Tensor tensor = to_torch(batch[name]);
    EXPECT_EQ(tensor.scalar_type(), type);
    EXPECT_THAT(tensor.sizes().vec(), ElementsAre(8, 2, 3));
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_TRUE(tensor.device().is_cpu());
    EXPECT_EQ(tensor.data_ptr(), batch[name].data);
  }
  const at::Tensor counted = to_torch(batch["int64"]);
  for (std::int64_t sample = 0; sample < 8; ++sample)
    EXPECT_EQ(counted[sample][1][2].item<std::int64_t>(), sample + 5);
  EXPECT_EQ(to_torch(batch["float16"])[3][0][1].item<float>(), 256.0F + 4);
  EXPECT_EQ(to_torch(batch["bfloat16"])[3][0][1].item<float>(), 256.0F + 4);
}

TEST(Torch, SaysWhichDtypesItLacks) {
  Pipeline pipeline = run_of_every_dtype();
  const Batch batch = pipeline.next();
#if TORCH_VERSION_MAJOR < 2
  for (const char* name : {"uint16", "uint32", "uint64"}) {
    const Error error = error_of([&] { (void)to_torch(batch[name]); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
#endif
  EXPECT_THAT(error_of([&] { (void)to_torch_channels_last(batch["uint8"]); }).what(),
              HasSubstr("[8, 2, 3]"));
}

TEST(Torch, GivesImagesAsConvolutionsTakeThem) {
  Pipeline pipeline(std::make_shared<testing::MemoryDataset>(24), std::make_shared<Pictures>(),
                    std::make_shared<HostDevice>(), {.batch_size = 8});
  const Batch batch = pipeline.next();
  const at::Tensor images = to_torch_channels_last(batch.images());
  EXPECT_THAT(images.sizes().vec(), ElementsAre(8, 3, 4, 5));
  EXPECT_TRUE(images.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(images.data_ptr(), batch.images().data);
  EXPECT_TRUE(at::equal(images, to_torch(batch.images()).permute({0, 3, 1, 2})));
  // Pixel (1, 2) of channel 1 is byte (1 * 5 + 2) * 3 + 1 of an image.
  EXPECT_EQ(images[6][1][1][2].item<std::uint8_t>(),
            batch.images().as<std::uint8_t>()[6 * 60 + 22]);
}

/// While it lives, counts the bytes that LibTorch allocates for tensors in host memory.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, most); }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;
  ~CountingAllocator() override { c10::SetCPUAllocator(before_, most); }

  c10::DataPtr allocate(std::size_t bytes) const override {
    bytes_ += bytes;
    return before_->allocate(bytes);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::uint8_t most = 255;
  c10::Allocator* before_;
  mutable std::atomic<std::size_t> bytes_{0};  // a counter, orders no other memory
};

TEST(Torch, ARunCopiesNoPixels) {
  const auto device = std::make_shared<HostDevice>();
  Pipeline pipeline(std::make_shared<testing::MemoryDataset>(240), std::make_shared<Pictures>(),
                    device, {.batch_size = 8, .epochs = 2});
  const CountingAllocator counter;
  const std::uint64_t slots = device->allocations();
  std::size_t batches = 0;
  for (; const Batch batch = TorchStream().next(pipeline); ++batches) {
    const at::Tensor images = to_torch_channels_last(batch.images());
    ASSERT_EQ(to_torch(batch.images()).data_ptr(), images.data_ptr());
  }
  EXPECT_EQ(batches, 60u);
  EXPECT_EQ(counter.bytes(), 0u);
  const at::Tensor copy = at::ones({100});  // it does count
  EXPECT_EQ(counter.bytes(), 400u);
  EXPECT_EQ(device->allocations(), slots);
  EXPECT_EQ(pipeline.report().copied_bytes, 0u);
}

/// The host, which says that it is a GPU.
class SeemingGpu final : public Device {
 public:
  std::string name() const override { return "seeming"; }
  DeviceId id() const override { return {DeviceId::Kind::cuda, 0}; }
  bool copies() const override { return host_.copies(); }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    return host_.allocate_host(bytes, node);
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return host_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }

 private:
  HostDevice host_;
};

TEST(Torch, ABatchOnAGpuIsRefusedWithoutLosingIt) {
  Pipeline pipeline(std::make_shared<testing::MemoryDataset>(24), std::make_shared<Pictures>(),
                    std::make_shared<SeemingGpu>(), {.batch_size = 8});
  const Error error = error_of([&] { (void)TorchStream().next(pipeline); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(pipeline.next().number(), 0U);
}

TEST(Torch, ShowsMicroBatches) {
  SmallRun run(64);
  run.options.slots.micro_batches = 4;
  Pipeline pipeline = run.pipeline();
  const Batch batch = TorchStream().next(pipeline, {.in_micro_batches = true});
  std::vector<at::Tensor> parts;
  for (const MicroBatch& part : batch.micro_batches()) parts.push_back(to_torch(part.labels()));
  EXPECT_TRUE(at::equal(at::cat(parts), to_torch(batch.labels())));
}

TEST(Torch, ATensorKeepsItsBatch) {
  SmallRun run(200);
  Pipeline pipeline = run.pipeline();
  Batch first = pipeline.next();
  const std::size_t slot = first.slot();
  at::Tensor labels = to_torch(first.labels());
  const at::Tensor copy = labels.clone();
  at::Tensor slice = labels.slice(0, 2, 5);
  first.reset();
  labels.reset();
  for (int batch = 0; batch < 4; ++batch) EXPECT_NE(pipeline.next().slot(), slot);
  EXPECT_TRUE(at::equal(slice, copy.slice(0, 2, 5)));
  std::thread([&] { slice.reset(); }).join();
  EXPECT_TRUE([&] {
    while (const Batch batch = pipeline.next())
      if (batch.slot() == slot) return true;
    return false;
  }());
}

TEST(Torch, ATensorOutlivesPipelineAndRuntime) {
  at::Tensor tensor;
  {
    Pipeline pipeline = run_of_every_dtype();
    tensor = to_torch(TorchStream(at::kCPU).next(pipeline)["int32"]);
  }
  EXPECT_EQ(tensor.sum().item<std::int64_t>(), 8 * 15 + 6 * 28);
  tensor.add_(1);  // a slot may be written to
  EXPECT_EQ(tensor[0][0][0].item<std::int64_t>(), 1);
}

TEST(Torch, BatchesKeepTheStreamsOfTheirTensors) {
  SmallRun run(64, true);
  Pipeline pipeline = run.pipeline();
  at::Tensor first, second;
  {
    const TorchStream taken_on(std::make_shared<HostStream>());
    const Batch batch = taken_on.next(pipeline);
    first = to_torch(batch.labels());
    second = to_torch(batch.labels(), TorchStream(std::make_shared<HostStream>()));
    taken_on.stream()->synchronize();
  }
  EXPECT_TRUE(at::equal(first, second));
  second.reset();
  first.reset();  // records an event on both streams
  HostStream stream;
  while (pipeline.next(stream)) {
  }
  EXPECT_EQ(pipeline.report().batches, 8U);
}

TEST(Torch, TakesNoDeviceThatItWasNotBuiltFor) {
#ifndef MILLRACE_TORCH_CUDA
  const Error error = error_of([] { (void)TorchStream(at::Device(at::kCUDA, 1)); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("cuda:1"));
#endif
  EXPECT_EQ(error_of([] { (void)TorchStream(at::Device(at::kMeta)); }).code(),
            ErrorCode::invalid_argument);
}

TEST(Torch, TakesWhatDlpackGives) {
  Pipeline pipeline = run_of_every_dtype();
  Batch batch = pipeline.next();
  void* const data = batch["float32"].data;
  at::Tensor tensor = at::fromDLPack(to_dlpack(batch["float32"]));
  batch.reset();
  EXPECT_EQ(tensor.data_ptr(), data);
  EXPECT_EQ(tensor[7][1][2].item<float>(), 12.0F);
  // The same tensor back through DLPack.
  DLManagedTensor* const back = at::toDLPack(tensor);
  EXPECT_TRUE(at::equal(at::fromDLPack(back), tensor));
}

}  // namespace
}  // namespace millrace
