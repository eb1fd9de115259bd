// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "perceptron_arithmetic.h"

/// A perceptron with one hidden layer, trained by gradient descent with momentum, in plain loops on
/// the host. It is small enough to read, and large enough to show a falling loss.
class Perceptron {
 public:
  /// Sums over the samples of a batch.
  struct Sums {
    double loss = 0;
    double right = 0;
    double samples = 0;
  };

  Perceptron(std::size_t pixels, std::size_t hidden, std::size_t classes, std::uint64_t seed)
      : pixels_(pixels),
        hidden_(hidden),
        classes_(classes),
        weights_((pixels + 1) * hidden + (hidden + 1) * classes),
        gradients_(weights_.size()),
        momentum_(weights_.size()) {
    millrace::Random random(seed, 0);
    const auto fill = [&random](std::span<float> weights, std::size_t inputs) {
      const double bound = std::sqrt(3.0 / static_cast<double>(inputs));
      for (float& weight : weights) weight = static_cast<float>(random.uniform(-bound, bound));
    };
    fill(std::span(weights_).first(pixels * hidden), pixels);
    fill(std::span(weights_).subspan((pixels + 1) * hidden, hidden * classes), hidden);
  }

  /// Adds the gradients of these samples to `gradients()`. `images` is [samples, pixels], `labels`
  /// [samples], 0 .. classes-1. Samples that are not valid are ignored.
  Sums add_gradients(std::span<const float> images, std::span<const std::int64_t> labels,
                     std::span<const std::uint8_t> valid) {
    Sums sums;
    std::vector<float> hidden(hidden_), output(classes_), hidden_gradient(hidden_);
    float* const first = weights_.data();
    float* const second = first + (pixels_ + 1) * hidden_;
    float* const first_gradient = gradients_.data();
    float* const second_gradient = first_gradient + (pixels_ + 1) * hidden_;
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
      if (valid[sample] == 0) continue;
      const auto label = static_cast<std::size_t>(labels[sample]);
      if (label >= classes_)
        throw std::out_of_range("label " + std::to_string(labels[sample]) +
                                " is not one of the classes");
      const std::span<const float> input = images.subspan(sample * pixels_, pixels_);
      layer(first, input, hidden);
      for (float& value : hidden) value = relu(value);
      layer(second, hidden, output);
      const Outcome outcome =
          softmax_cross_entropy(output.data(), static_cast<int>(classes_), static_cast<int>(label));
      sums.loss += outcome.loss;
      sums.right += outcome.right ? 1 : 0;
      sums.samples += 1;

      std::fill(hidden_gradient.begin(), hidden_gradient.end(), 0.0F);
      add_layer_gradient(second, second_gradient, hidden, output, hidden_gradient);
      for (std::size_t i = 0; i < hidden_; ++i)
        hidden_gradient[i] = relu_gradient(hidden[i], hidden_gradient[i]);
      add_layer_gradient(nullptr, first_gradient, input, hidden_gradient, {});
    }
    return sums;
  }

  /// Makes one step along the summed gradients / `samples`, and sets the gradients to zero.
  void step(double samples, float rate) {
    const auto scale = static_cast<float>(1 / std::max(samples, 1.0));
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      momentum_step(weights_[i], momentum_[i], gradients_[i], scale, rate);
      gradients_[i] = 0;
    }
  }

  std::span<float> gradients() { return gradients_; }
  std::span<float> weights() { return weights_; }
  std::span<float> momentum() { return momentum_; }

 private:
  /// Computes output = weights x input + bias. Weights are [outputs, inputs], followed by the
  /// biases.
  static void layer(const float* weights, std::span<const float> input, std::span<float> output) {
    const float* const bias = weights + input.size() * output.size();
    for (std::size_t o = 0; o < output.size(); ++o) {
      float sum = bias[o];
      for (std::size_t i = 0; i < input.size(); ++i)
        sum += weights[o * input.size() + i] * input[i];
      output[o] = sum;
    }
  }

  static void add_layer_gradient(const float* weights, float* gradients,
                                 std::span<const float> input,
                                 std::span<const float> output_gradient,
                                 std::span<float> input_gradient) {
    float* const bias = gradients + input.size() * output_gradient.size();
    for (std::size_t o = 0; o < output_gradient.size(); ++o) {
      const float gradient = output_gradient[o];
      bias[o] += gradient;
      if (gradient == 0) continue;
      for (std::size_t i = 0; i < input.size(); ++i)
        gradients[o * input.size() + i] += gradient * input[i];
      for (std::size_t i = 0; i < input_gradient.size(); ++i)
        input_gradient[i] += gradient * weights[o * input.size() + i];
    }
  }

  std::size_t pixels_;
  std::size_t hidden_;
  std::size_t classes_;
  std::vector<float> weights_;
  std::vector<float> gradients_;
  std::vector<float> momentum_;
};
