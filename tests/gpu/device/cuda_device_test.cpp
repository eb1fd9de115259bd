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
    if (message.find("this build needs") == std::string::npos) {  // the driver's fault
      EXPECT_EQ(message.find("no CUDA device"), 0U) << message;
    }
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// run.sh uses this test to find out whether it can continue.
TEST(CudaDevice, IsFoundHere) {
  try {
    EXPECT_EQ(CudaDevice(0).name(), "cuda:0");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
}

TEST(CudaDevice, RefusesADeviceThatDoesNotExist) {
  EXPECT_THROW(CudaDevice(-1), Error);
  EXPECT_THROW(CudaDevice(1000), Error);
}

}  // namespace
}  // namespace millrace
