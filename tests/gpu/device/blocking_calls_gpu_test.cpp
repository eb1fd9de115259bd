// SPDX-License-Identifier: Apache-2.0
//
// Calls of a run to the CUDA runtime and the driver, recorded by CUPTI: in steady state none of
// them allocates or waits. The test does not use the library's own reports, so it also finds calls
// that the library does not report.
#include <cupti.h>
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/device/gpu_run.h"
#include "gpu/device/gpu_test.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::GpuRun;
using testing::patience;

bool blocks(std::string_view function) {
  constexpr std::array beginnings{
      "cudaMalloc",         "cudaFree",         "cudaHostAlloc",     "cudaHostRegister",
      "cudaHostUnregister", "cudaStreamCreate", "cudaStreamDestroy", "cudaEventCreate",
      "cudaEventDestroy",   "cudaMemcpy_",      "cudaMemset_",       "cuMemAlloc",
      "cuMemFree",          "cuMemHostAlloc",   "cuMemHostRegister", "cuMemHostUnregister",
      "cuStreamCreate",     "cuStreamDestroy",  "cuEventCreate",     "cuEventDestroy",
      "cuModuleLoad",       "cuLibraryLoad"};
  return function.find("Synchronize") != std::string_view::npos ||
         std::ranges::any_of(beginnings, [function](std::string_view beginning) {
           return function.starts_with(beginning);
         });
}

/// Counts calls of all threads by name while it lives.
class CallCounter {
 public:
  CallCounter() {
    const CUptiResult subscribed = cuptiSubscribe(&subscriber_, on_call, this);
    works_ = subscribed == CUPTI_SUCCESS &&
             cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS &&
             cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS;
    subscribed_ = subscribed == CUPTI_SUCCESS;
  }
  ~CallCounter() {
    if (subscribed_) cuptiUnsubscribe(subscriber_);
  }
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;

  bool works() const { return works_; }
  std::map<std::string, std::size_t> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    calls_.clear();
  }

 private:
  static void CUPTIAPI on_call(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                               const void* data) {
    const auto* call = static_cast<const CUpti_CallbackData*>(data);
    if (call->callbackSite != CUPTI_API_ENTER || call->functionName == nullptr) return;
    auto* counter = static_cast<CallCounter*>(self);
    std::lock_guard lock(counter->mutex_);
    ++counter->calls_[call->functionName];
  }

  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool subscribed_ = false;
  bool works_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> calls_;
};

std::string blocking_calls(const std::map<std::string, std::size_t>& calls) {
  std::string result;
  for (const auto& [name, count] : calls)
    if (blocks(name)) result += name + " x " + std::to_string(count) + "; ";
  return result;
}

class BlockingCallsOnGpu : public testing::GpuTest {};

TEST_F(BlockingCallsOnGpu, NoneBetweenBatch20AndBatch200) {
  CallCounter counter;
  if (!counter.works()) GTEST_SKIP() << "CUPTI tells no calls here";
  GpuRun run;
  run.height = 64;
  run.width = 64;
  run.options.epochs = 0;
  run.options.slots.micro_batches = 2;
  run.options.conversion = GpuRun::conversion();
  CudaStream stream(0);
  Pipeline pipeline = run.on(std::make_shared<CudaDevice>());
  EXPECT_NE(blocking_calls(counter.calls()), "") << "the start allocates, so nothing was counted";
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(pipeline.next(stream, patience));
  counter.clear();
  for (int n = 20; n < 200; ++n) ASSERT_TRUE(pipeline.next(stream, patience));
  const auto calls = counter.calls();
  EXPECT_EQ(blocking_calls(calls), "");
  std::size_t all = 0;
  for (const auto& [name, count] : calls) all += count;
  EXPECT_GT(all, 180U) << "the copies and conversions were not counted";
  pipeline.stop();
  stream.synchronize();
}

}  // namespace
}  // namespace millrace
