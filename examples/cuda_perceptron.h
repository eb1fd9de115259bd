// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>

#include "perceptron_on_device.h"

// What cudaStream_t points to.
struct CUstream_st;

/// The perceptron in memory of the current CUDA device. Its calls put cuBLAS products and kernels
/// on `stream`; none of them allocates or waits, so they can be captured into a graph. Throws
/// `std::runtime_error` when CUDA fails.
class CudaPerceptron {
 public:
  /// `weights` is what it starts with, `most_samples` how many come at once.
  CudaPerceptron(const PerceptronShape& shape, int most_samples, std::span<const float> weights,
                 CUstream_st* stream);
  ~CudaPerceptron();
  CudaPerceptron(const CudaPerceptron&) = delete;
  CudaPerceptron& operator=(const CudaPerceptron&) = delete;

  /// As the functions of these names in perceptron_on_device.h.
  void look(const DeviceSamples& samples);
  void add_gradients(const DeviceSamples& samples, bool zero_first);
  void step(float scale, float rate);

  /// Waits for the stream; what was summed up is then zero again.
  std::array<double, sum_count> take_sums();

 private:
  struct OnDevice;
  std::unique_ptr<OnDevice> on_device_;
};
