// SPDX-License-Identifier: Apache-2.0
//
// The same perceptron as a list of calls to a device: matrix products, and functions that are
// called for all indices at once. `Queue` is the device: cuda_perceptron.cu has one with cuBLAS and
// kernels. With one of plain loops everything runs on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perceptron_arithmetic.h"

/// A row-major matrix in memory of the device. With `transposed` its rows and columns are exchanged
/// when it is read.
struct Matrix {
  float* data = nullptr;
  int rows = 0;
  int columns = 0;
  bool transposed = false;
};

inline Matrix transpose(Matrix matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

/// The arguments of a BLAS `sgemm`: C = op(A) op(B) + beta C, all column-major.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  int m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int lda = 0;
  const float* b = nullptr;
  int ldb = 0;
  float beta = 0;
  float* c = nullptr;
  int ldc = 0;
};

/// Returns result = left x right + beta result for row-major matrices. BLAS reads a row-major
/// matrix as its transpose, so it computes result' = right' x left': no data is moved.
inline Gemm product(Matrix result, const Matrix& left, const Matrix& right, float beta) {
  return {.transpose_a = right.transposed,
          .transpose_b = left.transposed,
          .m = result.columns,
          .n = result.rows,
          .k = left.transposed ? left.rows : left.columns,
          .a = right.data,
          .lda = right.columns,
          .b = left.data,
          .ldb = left.columns,
          .beta = beta,
          .c = result.data,
          .ldc = result.columns};
}

/// Samples in memory of the device. `images` is [samples, pixels], the others are [samples].
struct DeviceSamples {
  const float* images = nullptr;
  const std::int64_t* labels = nullptr;
  const std::uint8_t* valid = nullptr;
  int samples = 0;
};

/// Indices of the sums over the samples' outcomes.
enum Sum { sum_loss, sum_right, sum_samples, sum_bad_labels, sum_count };

struct PerceptronShape {
  int pixels = 0;
  int hidden = 0;
  int classes = 0;

  int first_layer() const { return (pixels + 1) * hidden; }
  int weights() const { return first_layer() + (hidden + 1) * classes; }
};

/// Addresses of the perceptron's numbers on the device. Layers are stored as in `Perceptron`:
/// [outputs, inputs], followed by the biases.
struct DevicePerceptron {
  PerceptronShape shape;
  float* weights = nullptr;
  float* momentum = nullptr;
  float* gradients = nullptr;
  float* hidden = nullptr;           ///< [samples, hidden]
  float* hidden_gradient = nullptr;  ///< [samples, hidden]
  float* output = nullptr;           ///< [samples, classes]; later their gradient
  float* outcomes = nullptr;         ///< [samples, sum_count]
  double* sums = nullptr;            ///< [sum_count]
};

// Functions that are called for each index. Their comments say what an index counts.

/// Index: a value of [samples, width].
struct AddBias {
  float* values;
  const float* bias;
  int width;
  bool rectify;

  HOST_AND_DEVICE void operator()(int index) const {
    const float value = values[index] + bias[index % width];
    values[index] = rectify ? relu(value) : value;
  }
};

/// Index: a sample. Samples that are not valid have no gradient and no outcome.
struct TakeLoss {
  DeviceSamples samples;
  float* output;
  float* outcomes;
  int classes;

  HOST_AND_DEVICE void operator()(int sample) const {
    float* const own = output + static_cast<std::ptrdiff_t>(sample) * classes;
    float* const sums = outcomes + static_cast<std::ptrdiff_t>(sample) * sum_count;
    const bool valid = samples.valid[sample] != 0;
    const std::int64_t label = samples.labels[sample];
    const bool good_label = label >= 0 && label < classes;
    Outcome outcome;
    if (valid && good_label) {
      outcome = softmax_cross_entropy(own, classes, static_cast<int>(label));
    } else {
      for (int c = 0; c < classes; ++c) own[c] = 0;
    }
    sums[sum_loss] = outcome.loss;
    sums[sum_right] = outcome.right ? 1.0F : 0.0F;
    sums[sum_samples] = valid ? 1.0F : 0.0F;
    sums[sum_bad_labels] = valid && !good_label ? 1.0F : 0.0F;
  }
};

/// Index: a column of [rows, columns], whose values are added to `sums`. One thread adds them in
/// order, so all runs have the same bits.
template <typename Number>
struct AddRows {
  const float* values;
  int rows;
  int columns;
  Number* sums;

  HOST_AND_DEVICE void operator()(int column) const {
    Number sum = sums[column];
    for (int row = 0; row < rows; ++row)
      sum += static_cast<Number>(values[static_cast<std::ptrdiff_t>(row) * columns + column]);
    sums[column] = sum;
  }
};

/// Index: a value.
struct MaskGradient {
  const float* values;
  float* gradient;

  HOST_AND_DEVICE void operator()(int index) const {
    gradient[index] = relu_gradient(values[index], gradient[index]);
  }
};

/// Index: a weight.
struct TakeStep {
  float* weights;
  float* momentum;
  const float* gradients;
  float scale;
  float rate;

  HOST_AND_DEVICE void operator()(int weight) const {
    momentum_step(weights[weight], momentum[weight], gradients[weight], scale, rate);
  }
};

// A `Queue` has multiply(Gemm), each(count, function) and zero(float*, count), and executes them in
// order.

/// Computes the samples' loss and the other sums. Leaves the gradient of the outputs in `output`.
template <typename Queue>
void look(Queue& queue, const DevicePerceptron& model, const DeviceSamples& samples) {
  const auto [pixels, hidden_width, classes] = model.shape;
  const Matrix images{const_cast<float*>(samples.images), samples.samples, pixels};  // only read
  const Matrix first{model.weights, hidden_width, pixels};
  const Matrix second{model.weights + model.shape.first_layer(), classes, hidden_width};
  const Matrix hidden{model.hidden, samples.samples, hidden_width};
  const Matrix output{model.output, samples.samples, classes};

  queue.multiply(product(hidden, images, transpose(first), 0));
  queue.each(samples.samples * hidden_width,
             AddBias{model.hidden, first.data + pixels * hidden_width, hidden_width, true});
  queue.multiply(product(output, hidden, transpose(second), 0));
  queue.each(samples.samples * classes,
             AddBias{model.output, second.data + hidden_width * classes, classes, false});
  queue.each(samples.samples, TakeLoss{samples, model.output, model.outcomes, classes});
  queue.each(sum_count, AddRows<double>{model.outcomes, samples.samples, sum_count, model.sums});
}

/// Like `look`, but also adds the samples' gradients to `gradients`. If `zero_first` is true, sets
/// `gradients` to zero before.
template <typename Queue>
void add_gradients(Queue& queue, const DevicePerceptron& model, const DeviceSamples& samples,
                   bool zero_first) {
  if (zero_first) queue.zero(model.gradients, model.shape.weights());
  look(queue, model, samples);

  const auto [pixels, hidden_width, classes] = model.shape;
  float* const first_gradients = model.gradients;
  float* const second_gradients = model.gradients + model.shape.first_layer();
  const Matrix images{const_cast<float*>(samples.images), samples.samples, pixels};  // only read
  const Matrix second{model.weights + model.shape.first_layer(), classes, hidden_width};
  const Matrix hidden{model.hidden, samples.samples, hidden_width};
  const Matrix output_gradient{model.output, samples.samples, classes};
  const Matrix hidden_gradient{model.hidden_gradient, samples.samples, hidden_width};

  queue.multiply(product(Matrix{second_gradients, classes, hidden_width},
                         transpose(output_gradient), hidden, 1));
  queue.each(classes, AddRows<float>{model.output, samples.samples, classes,
                                     second_gradients + hidden_width * classes});
  queue.multiply(product(hidden_gradient, output_gradient, second, 0));
  queue.each(samples.samples * hidden_width, MaskGradient{model.hidden, model.hidden_gradient});
  queue.multiply(product(Matrix{first_gradients, hidden_width, pixels}, transpose(hidden_gradient),
                         images, 1));
  queue.each(hidden_width, AddRows<float>{model.hidden_gradient, samples.samples, hidden_width,
                                          first_gradients + pixels * hidden_width});
}

/// Makes one step along the gradients x `scale`.
template <typename Queue>
void step(Queue& queue, const DevicePerceptron& model, float scale, float rate) {
  queue.each(model.shape.weights(),
             TakeStep{model.weights, model.momentum, model.gradients, scale, rate});
}
