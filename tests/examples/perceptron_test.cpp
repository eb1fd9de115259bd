// SPDX-License-Identifier: Apache-2.0
//
// Compares the perceptron as calls to a device, done by plain loops here, with the one that loops
// over samples. Only cuBLAS and the kernels' launches remain to be tested on a GPU.
#include "perceptron.h"

#include <gmock/gmock.h>
#include <millrace/random.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "examples/loop_queue.h"
#include "perceptron_on_device.h"

namespace {

using ::testing::Each;
using ::testing::FloatEq;

// All extents differ, so that mixing them up is detected.
constexpr PerceptronShape shape{.pixels = 13, .hidden = 7, .classes = 5};
constexpr int max_samples = 11;
constexpr float unwritten = std::numeric_limits<float>::quiet_NaN();

struct Data {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> valid;

  explicit Data(int samples, std::uint64_t seed = 1) {
    millrace::Random random(seed, 0);
    for (int i = 0; i < samples * shape.pixels; ++i)
      images.push_back(static_cast<float>(random.uniform(-1, 1)));
    for (int i = 0; i < samples; ++i) {
      labels.push_back(static_cast<std::int64_t>(random.below(shape.classes)));
      valid.push_back(i % 4 == 3 ? 0 : 1);
    }
  }
  DeviceSamples from(int first, int samples) const {
    return {images.data() + first * shape.pixels, labels.data() + first, valid.data() + first,
            samples};
  }
  DeviceSamples all() const { return from(0, static_cast<int>(labels.size())); }
};

/// Each array has memory of its own, so a sanitizer detects accesses beyond it.
struct OnDevice {
  explicit OnDevice(std::span<const float> from) : weights(from.begin(), from.end()) {
    model = {shape,         weights.data(),         momentum.data(), gradients.data(),
             hidden.data(), hidden_gradient.data(), output.data(),   outcomes.data(),
             sums.data()};
  }
  void add(const DeviceSamples& samples, bool zero_first) {
    add_gradients(queue, model, samples, zero_first);
  }

  LoopQueue queue;
  std::vector<float> weights;
  std::vector<float> momentum = std::vector<float>(static_cast<std::size_t>(shape.weights()));
  std::vector<float> gradients =
      std::vector<float>(static_cast<std::size_t>(shape.weights()), unwritten);
  std::vector<float> hidden = std::vector<float>(max_samples * shape.hidden, unwritten);
  std::vector<float> hidden_gradient = std::vector<float>(max_samples * shape.hidden, unwritten);
  std::vector<float> output = std::vector<float>(max_samples * shape.classes, unwritten);
  std::vector<float> outcomes = std::vector<float>(max_samples * sum_count, unwritten);
  std::vector<double> sums = std::vector<double>(sum_count);
  DevicePerceptron model;
};

void expect_near(std::span<const float> values, std::span<const float> expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], 1e-5F + 1e-5F * std::abs(expected[i])) << i;
}

class DevicePerceptronTest : public ::testing::Test {
 protected:
  Perceptron::Sums reference(const Data& data) {
    return host_.add_gradients(data.images, data.labels, data.valid);
  }

  Perceptron host_{static_cast<std::size_t>(shape.pixels), static_cast<std::size_t>(shape.hidden),
                   static_cast<std::size_t>(shape.classes), 3};
  OnDevice device_{host_.weights()};
};

TEST_F(DevicePerceptronTest, GradientsAndSumsAreThoseOfTheLoopOverSamples) {
  const Data data(max_samples);
  device_.add(data.all(), true);
  const Perceptron::Sums expected = reference(data);
  expect_near(device_.gradients, host_.gradients());
  EXPECT_NEAR(device_.sums[sum_loss], expected.loss, 1e-4);
  EXPECT_EQ(device_.sums[sum_right], expected.right);
  EXPECT_EQ(device_.sums[sum_samples], expected.samples);
  EXPECT_LT(expected.samples, max_samples);
  EXPECT_EQ(device_.sums[sum_bad_labels], 0);
}

TEST_F(DevicePerceptronTest, PartsAddUpToTheBatch) {
  const Data data(max_samples);
  device_.add(data.from(0, 4), true);
  device_.add(data.from(4, 4), false);
  device_.add(data.from(8, 3), false);
  const Perceptron::Sums expected = reference(data);
  expect_near(device_.gradients, host_.gradients());
  EXPECT_NEAR(device_.sums[sum_loss], expected.loss, 1e-4);
}

TEST_F(DevicePerceptronTest, StepsGoTheSameWay) {
  for (std::uint64_t batch = 0; batch < 20; ++batch) {
    const Data data(max_samples - static_cast<int>(batch % 2), batch);
    device_.add(data.all(), true);
    const Perceptron::Sums expected = reference(data);
    step(device_.queue, device_.model, 1 / static_cast<float>(expected.samples), 0.1F);
    host_.step(expected.samples, 0.1F);
  }
  expect_near(device_.weights, host_.weights());
  expect_near(device_.momentum, host_.momentum());
}

TEST_F(DevicePerceptronTest, LookingLeavesTheGradientsAlone) {
  const Data data(max_samples);
  look(device_.queue, device_.model, data.all());
  EXPECT_NEAR(device_.sums[sum_loss], reference(data).loss, 1e-4);
  EXPECT_THAT(device_.gradients, Each(::testing::NanSensitiveFloatEq(unwritten)));
}

TEST_F(DevicePerceptronTest, LabelsThatAreNoneCountAndLeaveNoGradient) {
  Data data(2);
  data.labels = {shape.classes, -1};
  device_.add(data.all(), true);
  EXPECT_EQ(device_.sums[sum_bad_labels], 2);
  EXPECT_EQ(device_.sums[sum_loss], 0);
  EXPECT_THAT(device_.gradients, Each(FloatEq(0)));
  EXPECT_THROW(reference(data), std::out_of_range);

  data.valid = {0, 0};  // the labels of bad records do not matter
  device_.add(data.all(), true);
  EXPECT_EQ(device_.sums[sum_bad_labels], 2);
}

TEST(PerceptronArithmetic, NumbersThatAreNoneAreNotHidden) {
  EXPECT_TRUE(std::isnan(relu(unwritten)));
  EXPECT_TRUE(std::isnan(relu_gradient(1, unwritten)));
  EXPECT_EQ(relu_gradient(0, 1), 0);
}

TEST(PerceptronArithmetic, LargeOutputsHaveALoss) {
  std::vector<float> output{1000, -1000};
  const Outcome outcome = softmax_cross_entropy(output.data(), 2, 1);
  EXPECT_NEAR(outcome.loss, -std::log(1e-20F), 1e-3);
  EXPECT_FALSE(outcome.right);
  EXPECT_THAT(output, ::testing::ElementsAre(FloatEq(1), FloatEq(-1)));
}

}  // namespace
