// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>

#include "perceptron_on_device.h"

// Declared like in the CUDA headers: cudaStream_t is a pointer to it.
struct CUstream_st;

/// The perceptron in memory of the current CUDA device. Its calls enqueue cuBLAS products and
/// kernels on `stream`. They neither allocate nor wait, so they can be captured into a graph.
/// Throws `std::runtime_error` when CUDA fails.
class CudaPerceptron {
 public:
  /// `weights` are the initial weights, `max_samples` the maximal number of samples per call.
  CudaPerceptron(const PerceptronShape& shape, int max_samples, std::span<const float> weights,
                 CUstream_st* stream);
  ~CudaPerceptron();
  CudaPerceptron(const CudaPerceptron&) = delete;
  CudaPerceptron& operator=(const CudaPerceptron&) = delete;

  /// See the functions of these names in perceptron_on_device.h.
  void look(const DeviceSamples& samples);
  void add_gradients(const DeviceSamples& samples, bool zero_first);
  void step(float scale, float rate);

  /// Waits for the stream. Returns the sums and sets them to zero.
  std::array<double, sum_count> take_sums();

 private:
  struct OnDevice;
  std::unique_ptr<OnDevice> on_device_;
};
