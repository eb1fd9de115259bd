// SPDX-License-Identifier: Apache-2.0
//
// Complete runs over the stand-in for the CUDA runtime, and a checker of their batches.
#pragma once

#include <gtest/gtest.h>
#include <millrace/cuda_device.h>

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "gpu/device/gpu_run.h"
#include "stand_in/stand_in_cuda.h"
#include "support/waiting.h"

namespace millrace::testing {

/// A trainer that checks batches: on its stream, each batch's images are compared with the expected
/// ones.
class Checker {
 public:
  explicit Checker(std::vector<std::vector<std::uint8_t>> expected, int device = 0)
      : expected_(std::move(expected)), stream_(device) {}
  ~Checker() { stand_in::drain(); }

  void step(const Batch& batch) {
    const Tensor images = batch.images();
    const std::uint64_t number = batch.number();
    stand_in::launch(stream_.handle(), [this, images, number] {
      const auto& wanted = expected_.at(number);
      const bool same = images.bytes() == wanted.size() &&
                        std::memcmp(images.data, wanted.data(), wanted.size()) == 0;
      ++(same ? right_ : wrong_);
    });
  }
  CudaStream& stream() { return stream_; }
  std::size_t batches() const { return expected_.size(); }
  /// Valid after `stand_in::drain()`.
  std::size_t right() const { return right_; }
  std::size_t wrong() const { return wrong_; }

 private:
  std::vector<std::vector<std::uint8_t>> expected_;
  std::atomic<std::size_t> right_{0};
  std::atomic<std::size_t> wrong_{0};
  CudaStream stream_;
};

/// Begins with a fresh stand-in; at the end everything must have been freed.
class CudaPipeline : public ::testing::Test {
 protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override {
    run_.options.runtime.reset();  // it keeps pinned memory
    run_.runtime.reset();
    expect_all_given_back();
  }
  /// Memory that still waits for streams when its pipeline ends is freed a little later.
  static void expect_all_given_back() {
    stand_in::drain();
    EXPECT_TRUE(eventually([] { return stand_in::live() == 0; }))
        << stand_in::live() << " handles or pieces leaked";
    stand_in::reset();
  }
  GpuRun run_;
};

}  // namespace millrace::testing
