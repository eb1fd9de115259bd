// SPDX-License-Identifier: Apache-2.0
//
// Whole runs on CudaDevice's own code, over a stand-in for the CUDA runtime: what arrives, what is called, and what becomes of failures.
#include <gmock/gmock.h>
#include <millrace/cuda_device.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fake_dataset.h"
#include "fake_transform.h"
#include "stand_in/stand_in_cuda.h"
#include "waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::MemoryDataset;
using testing::patience;
using testing::StampTransform;
using testing::Stopwatch;
namespace stand_in = testing::stand_in;

/// A run over made-up records, and the same on the host for comparison.
struct CudaRun {
  std::shared_ptr<MemoryDataset> dataset = std::make_shared<MemoryDataset>(44);
  std::shared_ptr<StampTransform> transform = std::make_shared<StampTransform>();
  std::shared_ptr<Runtime> runtime = make_runtime({.workers = 2});
  PipelineOptions options{.batch_size = 8, .seed = 11, .epochs = 1, .micro_batches = 2, .runtime = runtime};

  Pipeline on(std::shared_ptr<Device> device) const { return Pipeline(dataset, transform, std::move(device), options); }

  /// The images of each batch.
  std::vector<std::vector<std::uint8_t>> expected() const {
    std::vector<std::vector<std::uint8_t>> batches;
    Pipeline pipeline = on(std::make_shared<HostDevice>());
    while (const Batch batch = pipeline.next()) {
      const auto images = batch.images().as<std::uint8_t>();
      batches.emplace_back(images.begin(), images.end());
    }
    return batches;
  }
};

/// A trainer: on its stream, when that has come so far, each batch's images are compared with what they must be.
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
      const bool same = images.bytes() == wanted.size() && std::memcmp(images.data, wanted.data(), wanted.size()) == 0;
      ++(same ? right_ : wrong_);
    });
  }
  CudaStream& stream() { return stream_; }
  std::size_t batches() const { return expected_.size(); }
  /// After `stand_in::drain()`.
  std::size_t right() const { return right_; }
  std::size_t wrong() const { return wrong_; }

 private:
  std::vector<std::vector<std::uint8_t>> expected_;
  std::atomic<std::size_t> right_{0};
  std::atomic<std::size_t> wrong_{0};
  CudaStream stream_;
};

class CudaPipeline : public ::testing::Test {
 protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { expect_all_given_back(); }
  /// What still waited for streams when its pipeline ended is given back a little later.
  static void expect_all_given_back() {
    stand_in::drain();
    EXPECT_TRUE(testing::eventually([] { return stand_in::live() == 0; })) << stand_in::live() << " handles or pieces leaked";
    stand_in::reset();
  }
  CudaRun run_;
};

TEST_F(CudaPipeline, BatchesAreThoseOfTheHost) {
  for (const std::size_t device_slots : {1U, 2U, 3U}) {
    CudaRun run;
    run.options.device_slots = device_slots;
    run.options.epochs = 3;
    Checker checker(run.expected());
    Pipeline pipeline = run.on(std::make_shared<CudaDevice>());
    while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
    stand_in::drain();
    EXPECT_EQ(checker.right(), checker.batches());
    EXPECT_EQ(checker.wrong(), 0U);
  }
}

// The step is slow, so the copies wait for it: a slot that was used again too early would show.
TEST_F(CudaPipeline, SlotsAreUsedAgainBehindTheStep) {
  Checker checker(run_.expected());
  Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
  while (const Batch batch = pipeline.next(checker.stream(), patience)) {
    stand_in::launch(checker.stream().handle(), [] { std::this_thread::sleep_for(5ms); });
    checker.step(batch);
  }
  stand_in::drain();
  EXPECT_EQ(checker.right(), checker.batches());
}

TEST_F(CudaPipeline, UsesTheCallersStream) {
  cudaStream_t own = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess);
  {
    CudaStream stream(0, own);
    EXPECT_EQ(stream.handle(), own);
    Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
    std::size_t batches = 0;
    while (pipeline.next(stream, patience)) ++batches;
    EXPECT_EQ(batches, 6U);
  }
  EXPECT_EQ(cudaStreamDestroy(own), cudaSuccess) << "the stream was destroyed under its owner";
}

TEST_F(CudaPipeline, NothingAllocatesOrSynchronisesInSteadyState) {
  run_.options.epochs = 20;
  Checker checker(run_.expected());
  Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
  for (int n = 0; n < 8; ++n) checker.step(pipeline.next(checker.stream(), patience));
  const std::uint64_t allocating = stand_in::allocating_calls();
  const std::uint64_t copies = stand_in::calls("cudaMemcpyAsync");
  while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
  EXPECT_GT(stand_in::calls("cudaMemcpyAsync"), copies + 100);
  EXPECT_EQ(stand_in::allocating_calls(), allocating);
  EXPECT_EQ(stand_in::synchronising_calls(), 0U);
}

TEST_F(CudaPipeline, TheReportHasTheTimesOfCopies) {
  Checker checker(run_.expected());
  Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
  while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
  const auto copies = [&] {
    const Report report = pipeline.report();
    const auto stage = std::ranges::find(report.stages, std::string("copy"), &StageReport::name);
    return stage == report.stages.end() ? 0 : stage->each.count;
  };
  EXPECT_TRUE(testing::eventually([&] { return copies() == checker.batches() * run_.options.micro_batches; })) << copies();
}

TEST_F(CudaPipeline, TwoDevicesRunAtOnce) {
  stand_in::reset(2);
  run_.options.epochs = 5;
  const auto expected = run_.expected();
  std::array<std::unique_ptr<Checker>, 2> checkers;
  for (int device = 0; device < 2; ++device)
    checkers[static_cast<std::size_t>(device)] = std::make_unique<Checker>(expected, device);
  {
    std::vector<std::jthread> trainers;
    for (int device = 0; device < 2; ++device)
      trainers.emplace_back([&, device] {
        Checker& checker = *checkers[static_cast<std::size_t>(device)];
        Pipeline pipeline = run_.on(std::make_shared<CudaDevice>(device));
        while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
      });
  }
  stand_in::drain();
  for (const auto& checker : checkers) EXPECT_EQ(checker->right(), expected.size());
}

TEST_F(CudaPipeline, WithoutADeviceItSaysSo) {
  stand_in::reset(0);
  try {
    (void)run_.on(std::make_shared<CudaDevice>());
    FAIL() << "a device was made that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), HasSubstr("no CUDA device"));
  }
}

// ---- failures

/// What a run did that something happened to.
struct Outcome {
  /// What was thrown, by whatever threw first; empty where the run went to its end.
  std::string error;
  std::size_t right = 0;
  std::size_t wrong = 0;
};

Outcome outcome_of(const CudaRun& run, const std::vector<std::vector<std::uint8_t>>& expected) {
  Outcome outcome;
  Checker checker(expected);
  const Stopwatch time;
  try {
    Pipeline pipeline = run.on(std::make_shared<CudaDevice>());
    while (const Batch batch = pipeline.next(checker.stream(), patience)) checker.step(batch);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    outcome.error = error.what();
  }
  EXPECT_LT(time.elapsed(), 10s) << "it hung";
  stand_in::drain();
  outcome.right = checker.right();
  outcome.wrong = checker.wrong();
  return outcome;
}

class CudaFaults : public CudaPipeline, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Calls, CudaFaults,
                         ::testing::Values("cudaGetDevice", "cudaMalloc", "cudaHostRegister", "cudaStreamCreateWithFlags",
                                           "cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventQuery", "cudaStreamWaitEvent",
                                           "cudaMemcpyAsync"));

// Each call in turn fails, once or from then on: the error reaches the trainer by its name, and whatever was handed out until then is right.
TEST_P(CudaFaults, EachCallInTurnReachesTheTrainer) {
  const std::string function = GetParam();
  const auto expected = run_.expected();
  (void)outcome_of(run_, expected);
  const std::uint64_t calls = std::min<std::uint64_t>(stand_in::calls(function), 60);
  ASSERT_GT(calls, 0U);
  std::size_t errors = 0;
  for (std::uint64_t nth = 1; nth <= calls; ++nth)
    for (const bool for_good : {false, true}) {
      SCOPED_TRACE(function + ", call " + std::to_string(nth) + (for_good ? " and all after it" : ""));
      expect_all_given_back();
      stand_in::fail(function, nth, cudaErrorIllegalAddress, for_good);
      Outcome outcome;
      try {
        outcome = outcome_of(run_, expected);
      } catch (const Error& error) {
        outcome.error = error.what();  // the checker's stream could not be made
      }
      ASSERT_EQ(outcome.wrong, 0U) << "a batch was not what it must be";
      if (nth == 1 && for_good) {
        EXPECT_NE(outcome.error, "");
      }
      if (outcome.error.empty()) {
        EXPECT_EQ(outcome.right, expected.size()) << "it ended early without an error";
      } else {
        EXPECT_THAT(outcome.error, HasSubstr(function + " failed"));
        ++errors;
      }
    }
  // How often an event is asked depends on the time that copies take, so a run may end before the call that was to fail.
  EXPECT_GT(errors, function == "cudaEventQuery" ? 10 : calls) << "failures were swallowed";
}

// A call that takes long holds the run up and does no harm.
TEST_P(CudaFaults, ACallThatTakesLongIsWaitedFor) {
  const auto expected = run_.expected();
  stand_in::stall(GetParam(), 3, 50ms);
  const Outcome outcome = outcome_of(run_, expected);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.right, expected.size());
}

TEST_F(CudaPipeline, EndsInTimeWhileTheStepGoesOn) {
  testing::Gate gate;
  auto checker = std::make_unique<Checker>(run_.expected());
  {
    Pipeline pipeline = run_.on(std::make_shared<CudaDevice>());
    Batch batch = pipeline.next(checker->stream(), patience);
    stand_in::launch(checker->stream().handle(), [&gate] { gate.pass(); });
    checker->step(batch);
    batch.reset();
    const Stopwatch time;
    EXPECT_THROW(pipeline.stop(), Error) << "the step uses a batch";
    EXPECT_LT(time.elapsed(), 5s);
  }
  gate.open();
  stand_in::drain();
  EXPECT_EQ(checker->right(), 1U) << "memory went from under the step";
}

}  // namespace
}  // namespace millrace
