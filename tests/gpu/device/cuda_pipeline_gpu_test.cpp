// SPDX-License-Identifier: Apache-2.0
//
// Complete runs whose batches are read back and compared with the host's: on a GPU, and over the
// stand-in.
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/device/gpu_run.h"
#include "gpu/device/gpu_test.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::DeviceBytes;
using testing::GpuRun;
using testing::MemoryDataset;
using testing::patience;

/// Takes all batches of the run and expects them to be equal to the host's.
void expect_the_hosts_batches(const GpuRun& run, const std::shared_ptr<CudaDevice>& device) {
  const auto expected = run.expected();
  CudaStream stream(0);
  Pipeline pipeline = run.on(device);
  std::size_t batches = 0;
  for (; const Batch batch = pipeline.next(stream, patience); ++batches) {
    ASSERT_LT(batch.number(), expected.size());
    const Tensor images = batch.images();
    ASSERT_EQ(DeviceBytes::bytes_at(images.data, images.bytes(), stream), expected[batch.number()])
        << "batch " << batch.number();
    const Tensor labels = batch.labels();
    const auto bytes = DeviceBytes::bytes_at(labels.data, labels.bytes(), stream);
    for (std::size_t sample = 0; sample < batch.size(); ++sample) {
      std::int64_t label = 0;
      std::memcpy(&label, bytes.data() + sample * sizeof label, sizeof label);
      EXPECT_EQ(label, MemoryDataset::label_of(batch.indices()[sample]));
    }
  }
  EXPECT_EQ(batches, expected.size());
}

class CudaPipelineOnGpu : public testing::GpuTest {};

TEST_F(CudaPipelineOnGpu, BatchesAreThoseOfTheHost) {
  const auto device = std::make_shared<CudaDevice>();
  for (const std::size_t micro_batches : {1U, 3U})
    for (const std::size_t width : {16U, 7U}) {
      SCOPED_TRACE(std::to_string(micro_batches) + " parts, width " + std::to_string(width));
      GpuRun run;
      run.width = width;
      run.options.slots.micro_batches = micro_batches;
      expect_the_hosts_batches(run, device);
      for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32})
        for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
          SCOPED_TRACE(to_string(dtype));
          run.options.conversion = GpuRun::conversion(dtype, layout);
          expect_the_hosts_batches(run, device);
        }
    }
}

TEST_F(CudaPipelineOnGpu, PartsAreThoseOfTheHost) {
  GpuRun run;
  run.options.slots.micro_batches = 3;
  for (const bool converts : {false, true}) {
    if (converts) run.options.conversion = GpuRun::conversion();
    const auto expected = run.expected();
    CudaStream stream(0);
    Pipeline pipeline = run.on(std::make_shared<CudaDevice>());
    while (const Batch batch = pipeline.next_in_micro_batches(stream)) {
      std::vector<std::uint8_t> images;
      for (const MicroBatch& part : batch.micro_batches()) {
        const Tensor tensor = part.images();
        const auto bytes = DeviceBytes::bytes_at(tensor.data, tensor.bytes(), stream);
        images.insert(images.end(), bytes.begin(), bytes.end());
      }
      EXPECT_EQ(images, expected.at(batch.number()))
          << "batch " << batch.number() << ", converted: " << converts;
    }
  }
}

TEST_F(CudaPipelineOnGpu, TwoPipelinesShareOneGpu) {
  const auto device = std::make_shared<CudaDevice>();
  std::vector<std::jthread> trainers;
  for (const DType dtype : {DType::float16, DType::float32})
    trainers.emplace_back([&device, dtype] {
      GpuRun run;
      run.options.epochs = 5;
      run.options.seed = 20 + static_cast<std::uint64_t>(dtype);
      run.options.conversion = GpuRun::conversion(dtype);
      expect_the_hosts_batches(run, device);
    });
}

// Slots are reused many times, and producing the batches neither allocates nor waits for the
// device.
TEST_F(CudaPipelineOnGpu, ALongRunMakesNoBlockingCall) {
  GpuRun run;
  run.options.epochs = 30;
  run.options.debug.forbid_blocking_calls = true;
  run.options.conversion = GpuRun::conversion(DType::bfloat16, ImageLayout::nhwc);
  expect_the_hosts_batches(run, std::make_shared<CudaDevice>());
}

}  // namespace
}  // namespace millrace
