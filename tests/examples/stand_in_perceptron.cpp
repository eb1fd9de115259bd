// SPDX-License-Identifier: Apache-2.0
//
// Replaces cuda_perceptron.cu, over the stand-in for the CUDA runtime: the same calls, done by
// loops when the stream reaches them.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "cuda_check.h"
#include "cuda_perceptron.h"
#include "examples/loop_queue.h"
#include "stand_in/stand_in_cuda.h"

namespace stand_in = millrace::testing::stand_in;

namespace {

/// Waits for the stand-in's threads when the program ends. Objects that are not freed by then make
/// the program fail.
struct AtEnd {
  AtEnd() { stand_in::live(); }  // the stand-in is made before this, and so destroyed after it
  ~AtEnd() { stand_in::reset(); }
} at_end;

}  // namespace

struct CudaPerceptron::OnDevice {
  cudaStream_t stream;
  std::vector<float> weights, momentum, gradients, hidden, hidden_gradient, output, outcomes;
  std::vector<double> sums = std::vector<double>(sum_count);
  DevicePerceptron model{};
};

CudaPerceptron::CudaPerceptron(const PerceptronShape& shape, int max_samples,
                               std::span<const float> weights, CUstream_st* stream) {
  const auto count = [](int number) { return static_cast<std::size_t>(number); };
  const auto rows = [&](int width) {
    return std::vector<float>(count(max_samples) * count(width));
  };
  on_device_ =
      std::make_unique<OnDevice>(OnDevice{.stream = stream,
                                          .weights = {weights.begin(), weights.end()},
                                          .momentum = std::vector<float>(count(shape.weights())),
                                          .gradients = std::vector<float>(count(shape.weights())),
                                          .hidden = rows(shape.hidden),
                                          .hidden_gradient = rows(shape.hidden),
                                          .output = rows(shape.classes),
                                          .outcomes = rows(sum_count)});
  OnDevice& own = *on_device_;
  own.model = {.shape = shape,
               .weights = own.weights.data(),
               .momentum = own.momentum.data(),
               .gradients = own.gradients.data(),
               .hidden = own.hidden.data(),
               .hidden_gradient = own.hidden_gradient.data(),
               .output = own.output.data(),
               .outcomes = own.outcomes.data(),
               .sums = own.sums.data()};
}

CudaPerceptron::~CudaPerceptron() = default;

void CudaPerceptron::look(const DeviceSamples& samples) {
  stand_in::launch(on_device_->stream, [model = on_device_->model, samples] {
    LoopQueue queue;
    ::look(queue, model, samples);
  });
}

void CudaPerceptron::add_gradients(const DeviceSamples& samples, bool zero_first) {
  stand_in::launch(on_device_->stream, [model = on_device_->model, samples, zero_first] {
    LoopQueue queue;
    ::add_gradients(queue, model, samples, zero_first);
  });
}

void CudaPerceptron::step(float scale, float rate) {
  stand_in::launch(on_device_->stream, [model = on_device_->model, scale, rate] {
    LoopQueue queue;
    ::step(queue, model, scale, rate);
  });
}

std::array<double, sum_count> CudaPerceptron::take_sums() {
  std::array<double, sum_count> sums{};
  stand_in::launch(on_device_->stream, [&] {
    std::copy_n(on_device_->model.sums, sum_count, sums.begin());
    std::fill_n(on_device_->model.sums, sum_count, 0.0);
  });
  check(cudaStreamSynchronize(on_device_->stream), "cudaStreamSynchronize");
  return sums;
}
