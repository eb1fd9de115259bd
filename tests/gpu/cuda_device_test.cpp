// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <cstdint>
#include <vector>

#include "fake_dataset.h"
#include "fake_transform.h"

namespace millrace {
namespace {

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

TEST(CudaDevice, WithoutAGpuItSaysSo) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  try {
    CudaDevice device;
    FAIL() << "a CUDA device was made on a machine without one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_NE(std::string(error.what()).find("no CUDA device"), std::string::npos) << error.what();
  }
}

TEST(CudaDevice, RefusesADeviceThatDoesNotExist) {
  EXPECT_THROW(CudaDevice(-1), Error);
  EXPECT_THROW(CudaDevice(1000), Error);
}

TEST(CudaDevice, BatchesEqualTheHostsToTheByte) {
  if (!has_gpu()) GTEST_SKIP() << "needs an NVIDIA GPU";
  const PipelineOptions options{.batch_size = 16, .seed = 5, .epochs = 2, .micro_batches = 2};
  const auto dataset = std::make_shared<testing::MemoryDataset>(100);
  const auto transform = std::make_shared<testing::StampTransform>();
  Pipeline on_gpu(dataset, transform, std::make_shared<CudaDevice>(), options);
  Pipeline on_host(dataset, transform, std::make_shared<HostDevice>(), options);
  CudaStream stream(0);
  while (const Batch expected = on_host.next()) {
    const Batch batch = on_gpu.next(stream);
    ASSERT_TRUE(batch);
    const Tensor images = batch.images();
    std::vector<std::uint8_t> bytes(images.bytes());
    ASSERT_EQ(cudaMemcpyAsync(bytes.data(), images.data, bytes.size(), cudaMemcpyDeviceToHost, stream.handle()), cudaSuccess);
    stream.synchronize();
    const auto wanted = expected.images().as<std::uint8_t>();
    EXPECT_EQ(bytes, std::vector<std::uint8_t>(wanted.begin(), wanted.end())) << "batch " << batch.number();
  }
  EXPECT_FALSE(on_gpu.next(stream));
}

}  // namespace
}  // namespace millrace
