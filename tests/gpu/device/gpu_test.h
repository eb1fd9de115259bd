// SPDX-License-Identifier: Apache-2.0
//
// For tests that run on a GPU if there is one, or over the stand-in for the CUDA runtime if they
// are linked with it.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::testing {

/// Number of devices that this program has, of CUDA or of the stand-in.
inline int gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// Tests that need a device.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

/// Device memory with the given bytes, and reading it back. Waits for the device.
class DeviceBytes {
 public:
  DeviceBytes(CudaDevice& device, CudaStream& stream, std::span<const std::uint8_t> bytes)
      : stream_(stream), memory_(device.allocate_device(bytes.size())) {
    write(bytes);
  }
  std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(memory_.data()); }
  void write(std::span<const std::uint8_t> bytes) {
    stream_.copy(memory_.data(), bytes.data(), bytes.size());
    stream_.synchronize();
  }
  std::vector<std::uint8_t> read() const { return bytes_at(data(), memory_.bytes(), stream_); }

  /// Bytes at a device address after the work that the stream has so far.
  static std::vector<std::uint8_t> bytes_at(const void* data, std::size_t bytes,
                                            CudaStream& stream) {
    std::vector<std::uint8_t> result(bytes);
    if (bytes == 0) return result;
    EXPECT_EQ(cudaMemcpyAsync(result.data(), data, bytes, cudaMemcpyDeviceToHost, stream.handle()),
              cudaSuccess);
    stream.synchronize();
    return result;
  }

 private:
  CudaStream& stream_;
  Memory memory_;
};

}  // namespace millrace::testing
