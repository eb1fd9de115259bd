// SPDX-License-Identifier: Apache-2.0
//
// Each call of the CUDA runtime in a run fails or takes long in turn, over the stand-in. The
// trainer must soon get the error, and must never get a wrong batch.
#include <gmock/gmock.h>
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/device/cuda_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::Checker;
using testing::CudaPipeline;
using testing::GpuRun;
using ::testing::HasSubstr;
using testing::patience;
using testing::Stopwatch;
namespace stand_in = testing::stand_in;

/// Result of a run with a fault.
struct Outcome {
  /// Message of the first exception; empty if the run was completed.
  std::string error;
  std::size_t right = 0;
  std::size_t wrong = 0;
  /// Total time, from making the device to the pipeline's end.
  milliseconds took{0};
};

Outcome outcome_of(const GpuRun& run, const std::vector<std::vector<std::uint8_t>>& expected) {
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
  outcome.took = std::chrono::duration_cast<milliseconds>(time.elapsed());
  EXPECT_LT(outcome.took, patience) << "it hung";
  stand_in::drain();
  outcome.right = checker.right();
  outcome.wrong = checker.wrong();
  return outcome;
}

/// Name of a call in the error message: that of the operation it belongs to.
std::string told_as(const std::string& function) {
  const bool launches = function == "cudaDeviceGetAttribute" || function == "cudaLaunchKernel";
  return launches ? "launch_conversion" : function;
}

/// Parameters: the failing call, and whether batches are converted.
class CudaFaults : public CudaPipeline,
                   public ::testing::WithParamInterface<std::tuple<const char*, bool>> {
 public:
  static std::string name_of(const ::testing::TestParamInfo<std::tuple<const char*, bool>>& info) {
    return std::string(std::get<0>(info.param)) + (std::get<1>(info.param) ? "_converted" : "");
  }

 protected:
  void SetUp() override {
    CudaPipeline::SetUp();
    // Each run pins memory again, so that all runs make the same number of calls.
    run_.options.runtime = make_runtime({.workers = 2, .kept_host_bytes = 0});
    if (std::get<1>(GetParam())) run_.options.conversion = GpuRun::conversion();
  }
};
INSTANTIATE_TEST_SUITE_P(
    Calls, CudaFaults,
    ::testing::Combine(::testing::Values("cudaGetDevice", "cudaMalloc", "cudaHostRegister",
                                         "cudaSetDevice", "cudaStreamCreateWithPriority",
                                         "cudaEventCreateWithFlags", "cudaEventRecord",
                                         "cuEventQuery", "cudaStreamWaitEvent",
                                         "cuStreamIsCapturing", "cudaMemcpyAsync"),
                       ::testing::Bool()),
    [](const auto& info) { return CudaFaults::name_of(info); });
INSTANTIATE_TEST_SUITE_P(Conversion, CudaFaults,
                         ::testing::Combine(::testing::Values("cudaLaunchKernel",
                                                              "cudaDeviceGetAttribute"),
                                            ::testing::Values(true)),
                         [](const auto& info) { return CudaFaults::name_of(info); });

// Each call in turn fails, once or from then on. The error must reach the trainer with the call's
// name, and all batches handed out until then must be right.
TEST_P(CudaFaults, EachCallInTurnReachesTheTrainer) {
  const std::string function = std::get<0>(GetParam());
  const auto expected = run_.expected();
  const Outcome good = outcome_of(run_, expected);
  // A failed run takes no longer than a good one, unless it waits until a timeout.
  const milliseconds limit = 1s + 10 * good.took;
  run_.options.debug.stop_timeout = 2 * limit;
  const std::uint64_t calls = std::min<std::uint64_t>(stand_in::calls(function), 60);
  ASSERT_GT(calls, 0U);
  std::size_t errors = 0;
  std::size_t late = 0;
  for (std::uint64_t nth = 1; nth <= calls; ++nth)
    for (const bool for_good : {false, true}) {
      SCOPED_TRACE(function + ", call " + std::to_string(nth) +
                   (for_good ? " and all after it" : ""));
      const auto failing = [&] {
        expect_all_given_back();
        stand_in::fail(function, nth, cudaErrorIllegalAddress, for_good);
        Outcome found;
        try {
          found = outcome_of(run_, expected);
        } catch (const Error& error) {
          found.error = error.what();  // the checker's stream could not be made
        }
        EXPECT_EQ(found.wrong, 0U) << "a batch was not what it must be";
        return found;
      };
      const Outcome outcome = testing::best_of_three(
          failing, [limit](const Outcome& found) { return found.took <= limit; });
      ASSERT_FALSE(HasFailure());
      if (nth == 1 && for_good) {
        EXPECT_NE(outcome.error, "");
      }
      if (outcome.error.empty()) {
        EXPECT_EQ(outcome.right, expected.size()) << "it ended early without an error";
      } else {
        EXPECT_THAT(outcome.error, HasSubstr(told_as(function) + " failed"));
        ++errors;
        if (outcome.took > limit) ++late;
      }
    }
  // On a busy machine some runs may be late, but a wait until its timeout would make all of them
  // late.
  EXPECT_LE(late, errors / 10) << "runs that failed took more than " << limit.count() << " ms";
  // The number of queries of an event depends on the time that copies take, so a run may end before
  // the call that was to fail.
  EXPECT_GT(errors, function == "cuEventQuery" ? 10 : calls) << "failures were swallowed";
}

// A call that takes long delays the run and does no harm.
TEST_P(CudaFaults, ACallThatTakesLongIsWaitedFor) {
  const auto expected = run_.expected();
  stand_in::stall(std::get<0>(GetParam()), 3, 50ms);
  const Outcome outcome = outcome_of(run_, expected);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.right, expected.size());
}

}  // namespace
}  // namespace millrace
