// SPDX-License-Identifier: Apache-2.0
//
// The CUDA trainer and its graphs, over the stand-in for the CUDA runtime.
#include <gmock/gmock.h>
#include <millrace/random.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "stand_in/stand_in_cuda.h"
#include "stream_clock.h"
#include "support/waiting.h"
#include "trainer.h"

namespace {

namespace stand_in = millrace::testing::stand_in;

constexpr std::size_t pixels = 12;
constexpr std::size_t classes = 3;
constexpr std::size_t batch_size = 8;
constexpr TrainerOptions options{
    .pixels = pixels, .hidden = 5, .classes = classes, .batch_size = batch_size};

/// Memory of one slot, for a batch or for a part of one that begins at sample `first`.
class Slot {
 public:
  explicit Slot(millrace::Device& device)
      : images_(device.allocate_device(batch_size * pixels * sizeof(float))),
        labels_(device.allocate_device(batch_size * sizeof(std::int64_t))),
        valid_(device.allocate_device(batch_size)) {}

  /// Fills in the next batch; the device's streams must be done with the last one.
  void fill(std::uint64_t batch) {
    millrace::Random random(batch, 0);
    for (std::size_t i = 0; i < batch_size * pixels; ++i)
      floats()[i] = static_cast<float>(random.uniform(-1, 1));
    for (std::size_t i = 0; i < batch_size; ++i) {
      labels()[i] = static_cast<std::int64_t>(random.below(classes));
      valid_.data()[i] = std::byte{static_cast<unsigned char>(random.below(4) != 0 ? 1 : 0)};
    }
  }

  Samples samples(std::size_t slot, std::size_t part, std::size_t first, std::size_t count) {
    return {.images = {floats() + first * pixels, millrace::DType::float32, {count, pixels}},
            .labels = {labels() + first, millrace::DType::int64, {count}},
            .valid = {valid_.data() + first, millrace::DType::uint8, {count}},
            .slot = slot,
            .part = part,
            .full_batch = true};
  }
  std::int64_t* labels() { return reinterpret_cast<std::int64_t*>(labels_.data()); }

 private:
  float* floats() { return reinterpret_cast<float*>(images_.data()); }

  millrace::Memory images_;
  millrace::Memory labels_;
  millrace::Memory valid_;
};

/// A trainer, and slots in its memory.
struct Training {
  explicit Training(std::unique_ptr<Trainer> made)
      : trainer(std::move(made)), slots{Slot(*trainer->device()), Slot(*trainer->device())} {}

  std::unique_ptr<Trainer> trainer;
  Slot slots[2];
};

class CudaTrainerTest : public ::testing::Test {
 protected:
  void SetUp() override { stand_in::reset(); }

  /// Sums of `batches` batches in two alternating slots, each in `parts` equal parts.
  static Perceptron::Sums train(Training& run, std::uint64_t batches, std::size_t parts) {
    Perceptron::Sums all;
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
      const std::size_t slot = batch % 2;
      run.slots[slot].fill(batch);
      const std::size_t size = batch_size / parts;
      for (std::size_t part = 0; part < parts; ++part)
        run.trainer->train(run.slots[slot].samples(slot, part, part * size, size));
      run.trainer->step(batch_size, 0.1F);
      const Perceptron::Sums sums = run.trainer->synchronize();
      all.loss += sums.loss;
      all.right += sums.right;
      all.samples += sums.samples;
    }
    return all;
  }

  static void expect_same(const Perceptron::Sums& sums, const Perceptron::Sums& expected) {
    EXPECT_NEAR(sums.loss, expected.loss, 1e-3);
    EXPECT_EQ(sums.right, expected.right);
    EXPECT_EQ(sums.samples, expected.samples);
  }
};

TEST_F(CudaTrainerTest, EachSlotAndPartIsCapturedOnceAndReplayedFromThenOn) {
  Training run(make_cuda_trainer(0, options));
  Training reference(make_host_trainer(options));
  expect_same(train(run, 10, 2), train(reference, 10, 2));
  EXPECT_EQ(stand_in::calls("cudaStreamBeginCapture"), 4U);
  EXPECT_EQ(stand_in::calls("cudaGraphLaunch"), 16U);
}

TEST_F(CudaTrainerTest, ABatchThatIsNotFullHasNoGraph) {
  Training run(make_cuda_trainer(0, options));
  Training reference(make_host_trainer(options));
  for (Training* one : {&run, &reference}) {
    one->slots[0].fill(1);
    Samples samples = one->slots[0].samples(0, 0, 0, 5);
    samples.full_batch = false;
    one->trainer->train(samples);
    one->trainer->step(5, 0.1F);
    one->trainer->train(samples);
    one->trainer->step(5, 0.1F);
  }
  expect_same(run.trainer->synchronize(), reference.trainer->synchronize());
  EXPECT_EQ(stand_in::calls("cudaStreamBeginCapture"), 0U);
  expect_same(train(run, 4, 1), train(reference, 4, 1));
  EXPECT_EQ(stand_in::calls("cudaGraphLaunch"), 2U);
}

TEST_F(CudaTrainerTest, LookingHasGraphsOfItsOwnAndTrainsNothing) {
  Training run(make_cuda_trainer(0, options));
  Training reference(make_host_trainer(options));
  for (Training* one : {&run, &reference}) train(*one, 2, 1);
  for (int time = 0; time < 3; ++time) {
    run.trainer->look(run.slots[0].samples(0, 0, 0, batch_size));
    reference.trainer->look(reference.slots[0].samples(0, 0, 0, batch_size));
    expect_same(run.trainer->synchronize(), reference.trainer->synchronize());
  }
  EXPECT_EQ(stand_in::calls("cudaStreamBeginCapture"), 3U);
  expect_same(train(run, 2, 1), train(reference, 2, 1));
}

TEST_F(CudaTrainerTest, SamplesElsewhereThanTheirGraphSaysAreRefused) {
  Training run(make_cuda_trainer(0, options));
  train(run, 2, 1);
  EXPECT_THROW(run.trainer->train(run.slots[1].samples(0, 0, 0, batch_size)), std::logic_error);
}

TEST_F(CudaTrainerTest, ALabelThatIsNoneIsAnError) {
  Training run(make_cuda_trainer(0, options));
  run.slots[0].fill(0);
  std::fill_n(run.slots[0].labels(), batch_size, 7);
  run.trainer->train(run.slots[0].samples(0, 0, 0, batch_size));
  EXPECT_THROW(run.trainer->synchronize(), std::out_of_range);
}

TEST_F(CudaTrainerTest, IdleIsTheTimeBetweenSteps) {
  Training run(make_cuda_trainer(0, options));
  EXPECT_EQ(run.trainer->idle(), 0);
  train(run, 10, 2);
  EXPECT_GT(run.trainer->idle(), 0);
  EXPECT_LT(run.trainer->idle(), 1);
}

TEST_F(CudaTrainerTest, WhatFailsInACaptureEndsIt) {
  Training run(make_cuda_trainer(0, options));
  run.slots[0].fill(0);
  stand_in::fail("cudaGraphInstantiate", 1, cudaErrorUnknown);
  EXPECT_THROW(run.trainer->train(run.slots[0].samples(0, 0, 0, batch_size)), std::runtime_error);
  EXPECT_FALSE(run.trainer->stream().capturing());
  EXPECT_NO_THROW(run.trainer->synchronize());
}

// A trainer checks the last error after its own launches.
TEST_F(CudaTrainerTest, TheClockOfItsStreamLeavesNoErrorBehind) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    StreamClock clock(stream);
    millrace::testing::Gate gate;
    stand_in::launch(stream, [&gate] { gate.pass(); });
    clock.begin();
    clock.end();
    EXPECT_EQ(clock.idle(), 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    gate.open();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
