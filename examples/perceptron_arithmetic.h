// SPDX-License-Identifier: Apache-2.0
//
// The perceptron's arithmetic, element by element. The trainer on the host and the kernels,
// compiled by nvcc, use the same functions.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif

/// Rectified linear unit. NaN stays NaN.
HOST_AND_DEVICE inline float relu(float value) { return value < 0 ? 0 : value; }

/// Gradient of `relu`'s input. `value` is its result, `gradient` the gradient of the result.
HOST_AND_DEVICE inline float relu_gradient(float value, float gradient) {
  return value <= 0 ? 0 : gradient;
}

struct Outcome {
  float loss = 0;
  bool right = false;
};

/// Replaces a sample's outputs, `classes` of them, by their gradients. The loss is the
/// cross-entropy of their softmax. 0 <= label < classes.
HOST_AND_DEVICE inline Outcome softmax_cross_entropy(float* output, int classes, int label) {
  int best = 0;
  for (int c = 1; c < classes; ++c)
    if (output[c] > output[best]) best = c;
  const float most = output[best];
  float sum = 0;
  for (int c = 0; c < classes; ++c) sum += output[c] = std::exp(output[c] - most);
  for (int c = 0; c < classes; ++c) output[c] /= sum;
  const float likely = output[label];
  output[label] -= 1;
  return {.loss = -std::log(likely < 1e-20F ? 1e-20F : likely), .right = best == label};
}

/// Makes one step of gradient descent with momentum. `scale` is 1 / samples, `rate` the learning
/// rate.
HOST_AND_DEVICE inline void momentum_step(float& weight, float& momentum, float gradient,
                                          float scale, float rate) {
  momentum = 0.9F * momentum + gradient * scale;
  weight -= rate * momentum;
}
