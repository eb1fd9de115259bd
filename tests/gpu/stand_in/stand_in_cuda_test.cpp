// SPDX-License-Identifier: Apache-2.0
//
// The stand-in does what a GPU does, and says what was done to it.
#include "stand_in/stand_in_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
namespace stand_in = testing::stand_in;

class StandInCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    stand_in::reset(2);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&device_, bytes), cudaSuccess);
    ASSERT_EQ(cudaHostRegister(host_, bytes, cudaHostRegisterPortable), cudaSuccess);
  }
  void TearDown() override {
    cudaFree(device_);
    cudaHostUnregister(host_);
    cudaEventDestroy(event_);
    cudaStreamDestroy(other_);
    cudaStreamDestroy(stream_);
    stand_in::reset();
  }

  cudaError_t copy_up() {
    return cudaMemcpyAsync(device_, host_, bytes, cudaMemcpyHostToDevice, stream_);
  }
  int first_byte() const { return static_cast<unsigned char*>(device_)[0]; }

  static constexpr std::size_t bytes = 1000;
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  void* device_ = nullptr;
  std::vector<unsigned char> host_memory_ = std::vector<unsigned char>(bytes, 7);
  void* host_ = host_memory_.data();
};

TEST_F(StandInCuda, CopiesHappenLateAndInOrder) {
  testing::Gate gate;
  stand_in::launch(stream_, [&gate] { gate.pass(); });
  ASSERT_EQ(copy_up(), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(first_byte(), 0xDB) << "device memory has whatever was there";
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  gate.open();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
  EXPECT_EQ(first_byte(), 7);
}

TEST_F(StandInCuda, EventsOrderStreamsByTheirLatestRecord) {
  testing::Gate gate;
  std::atomic<bool> ran{false};
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess)
      << "never recorded: nothing to wait for";
  stand_in::launch(stream_, [&gate] { gate.pass(); });
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
  stand_in::launch(other_, [&ran] { ran = true; });
  ASSERT_EQ(cudaEventRecord(event_, other_), cudaSuccess)
      << "a later record does not move what others wait for";
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(ran);
  gate.open();
  EXPECT_TRUE(testing::eventually([&] { return ran.load(); }));
  stand_in::drain();
}

TEST_F(StandInCuda, FailsTheCallThatItIsToldTo) {
  stand_in::fail("cudaMemcpyAsync", 2, cudaErrorIllegalAddress);
  EXPECT_EQ(copy_up(), cudaSuccess);
  EXPECT_EQ(copy_up(), cudaErrorIllegalAddress);
  EXPECT_EQ(copy_up(), cudaSuccess);
  stand_in::fail("cudaMemcpyAsync", 1, cudaErrorIllegalAddress, true);
  EXPECT_EQ(copy_up(), cudaErrorIllegalAddress);
  EXPECT_EQ(copy_up(), cudaErrorIllegalAddress);
  EXPECT_EQ(stand_in::calls("cudaMemcpyAsync"), 5U);
}

TEST_F(StandInCuda, CountsWhatAllocatesAndSynchronises) {
  EXPECT_EQ(stand_in::allocating_calls(), 5U);
  EXPECT_EQ(stand_in::live(), 5U);
  ASSERT_EQ(copy_up(), cudaSuccess);
  EXPECT_EQ(stand_in::synchronising_calls(), 0U);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(stand_in::synchronising_calls(), 1U);
  std::vector<char> pageable(bytes);
  ASSERT_EQ(cudaMemcpyAsync(device_, pageable.data(), bytes, cudaMemcpyHostToDevice, stream_),
            cudaSuccess);
  EXPECT_EQ(stand_in::synchronising_calls(), 2U)
      << "a copy from memory that is not page-locked waits";
  stand_in::drain();
}

TEST_F(StandInCuda, RefusesWhatIsNotItsOwn) {
  EXPECT_EQ(cudaMemcpyAsync(host_, host_, bytes, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device_, host_, bytes + 1, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t elsewhere = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, elsewhere), cudaErrorInvalidResourceHandle)
      << "an event of another device";
  EXPECT_EQ(cudaStreamDestroy(elsewhere), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(elsewhere), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(StandInCuda, NoticesWhatIsNotGivenBack) {
  EXPECT_THROW(stand_in::reset(), std::logic_error);
}

}  // namespace
}  // namespace millrace
