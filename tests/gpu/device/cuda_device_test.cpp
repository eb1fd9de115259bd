// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <string>

#include "gpu/device/gpu_test.h"

namespace millrace {
namespace {

TEST(CudaDevice, WithoutAGpuItSaysSo) {
  if (testing::gpu_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  try {
    CudaDevice device;
    FAIL() << "a CUDA device was made on a machine without one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    const std::string message = error.what();
    EXPECT_EQ(message.find("no CUDA device"), 0U) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(CudaDevice, RefusesADeviceThatDoesNotExist) {
  EXPECT_THROW(CudaDevice(-1), Error);
  EXPECT_THROW(CudaDevice(1000), Error);
}

}  // namespace
}  // namespace millrace
