// SPDX-License-Identifier: Apache-2.0
//
// The stand-in behaves like a GPU, and reports the calls that it received.
#include "stand_in/stand_in_cuda.h"

#include <gmock/gmock.h>
#include <millrace/conversion_work.h>
#include <millrace/error.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/driver.h"
#include "pixel/kernels.h"
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
    stand_in::drain();
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
  EXPECT_EQ(first_byte(), 0) << "a copy from memory that is not page-locked waits";
  EXPECT_EQ(stand_in::synchronising_calls(), 2U);
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

TEST_F(StandInCuda, RefusesCopiesAndKernelsOfAnotherDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t elsewhere = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device_, host_, bytes, cudaMemcpyHostToDevice, elsewhere),
            cudaErrorInvalidValue);
  const ConversionWork work{.source = static_cast<std::uint8_t*>(device_),
                            .destination = static_cast<std::uint8_t*>(device_) + 48,
                            .samples = 1,
                            .height = 4,
                            .width = 4,
                            .channels = 3,
                            .dtype = DType::uint8};
  EXPECT_EQ(launch_kernel(work, stream_).value().status, cudaErrorInvalidResourceHandle)
      << "the stream's device is not the current one";
  EXPECT_EQ(cudaStreamDestroy(elsewhere), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(launch_kernel(work, stream_).value().status, cudaSuccess);
  stand_in::drain();
}

TEST_F(StandInCuda, PageLocksNoByteTwice) {
  std::vector<char> pages(3 * bytes);
  char* const middle = pages.data() + bytes;
  const auto lock = [](char* data, std::size_t size) {
    return cudaHostRegister(data, size, cudaHostRegisterPortable);
  };
  ASSERT_EQ(lock(middle, bytes), cudaSuccess);
  EXPECT_EQ(lock(middle, bytes), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(lock(pages.data(), bytes + 1), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(lock(middle + bytes - 1, 2), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(lock(middle + 1, 1), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(lock(pages.data(), 3 * bytes), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(lock(pages.data(), bytes), cudaSuccess);
  EXPECT_EQ(lock(middle + bytes, bytes), cudaSuccess);
  for (char* const data : {pages.data(), middle, middle + bytes})
    EXPECT_EQ(cudaHostUnregister(data), cudaSuccess);
}

TEST_F(StandInCuda, GivesMemoryBackBehindAllWorkOfItsDevice) {
  if (stand_in::frees_at_once()) GTEST_SKIP() << "memory goes at once";
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  void* elsewhere = nullptr;
  ASSERT_EQ(cudaMalloc(&elsewhere, bytes), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
  std::vector<char> pages(bytes);
  ASSERT_EQ(cudaHostRegister(pages.data(), bytes, cudaHostRegisterPortable), cudaSuccess);
  testing::Gate gate;
  stand_in::launch(other_, [&gate] { gate.pass(); });
  EXPECT_EQ(cudaFree(elsewhere), cudaSuccess) << "a stream of another device was waited for";
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess) << "nothing is no memory, and not waited for";
  std::atomic<int> returned{0};
  std::jthread freeing([&] {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    ++returned;
  });
  std::jthread unlocking([&] {
    EXPECT_EQ(cudaHostUnregister(pages.data()), cudaSuccess);
    ++returned;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(returned, 0) << "memory never had to do with the stream, which is busy";
  gate.open();
}

TEST_F(StandInCuda, TellsOfWorkOnMemoryThatWentAtOnce) {
  if (!stand_in::frees_at_once()) GTEST_SKIP() << "memory goes behind all work";
  std::vector<unsigned char> pages(bytes, 7);
  unsigned char* memory = nullptr;
  const auto take = [&] {
    void* taken = nullptr;
    EXPECT_EQ(cudaMalloc(&taken, bytes), cudaSuccess);
    EXPECT_EQ(cudaHostRegister(pages.data(), bytes, cudaHostRegisterPortable), cudaSuccess);
    memory = static_cast<unsigned char*>(taken);
  };
  const auto copy = [&] {
    EXPECT_EQ(cudaMemcpyAsync(memory, pages.data(), bytes, cudaMemcpyHostToDevice, other_),
              cudaSuccess);
  };
  const auto free_memory = [&] {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(memory[bytes - 1], 0xDD) << "it is not poisoned";
  };
  const auto unlock = [&] { EXPECT_EQ(cudaHostUnregister(pages.data()), cudaSuccess); };
  {
    SCOPED_TRACE("device memory goes before a copy to it");
    take();
    testing::Gate gate;
    stand_in::launch(other_, [&gate] { gate.pass(); });
    copy();
    free_memory();
    gate.open();
    stand_in::drain();
    EXPECT_THROW(stand_in::check_freed_memory(), std::logic_error);
    unlock();
  }
  {
    SCOPED_TRACE("and before a kernel that writes to it");
    take();
    testing::Gate gate;
    stand_in::launch(other_, [&gate, to = memory] {
      gate.pass();
      *to = 1;
    });
    free_memory();
    gate.open();
    stand_in::drain();
    EXPECT_THROW(stand_in::check_freed_memory(), std::logic_error);
    unlock();
  }
  {
    SCOPED_TRACE("page-locked memory goes before a copy from it");
    take();
    testing::Gate gate;
    stand_in::launch(other_, [&gate] { gate.pass(); });
    copy();
    unlock();
    gate.open();
    stand_in::drain();
    EXPECT_EQ(*memory, 0xDD) << "it was copied all the same";
    free_memory();
    EXPECT_THROW(stand_in::check_freed_memory(), std::logic_error);
  }
}

TEST_F(StandInCuda, DevicesHaveAsMuchMemoryAsTheyAreGiven) {
  stand_in::limit_memory(3 * bytes);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 2 * bytes + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 2 * bytes), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(StandInCuda, TheLegacyStreamAndBlockingOnesWaitForEachOther) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
  for (const cudaStream_t one : {blocking, cudaStreamPerThread}) {
    std::vector<int> done;
    std::atomic<bool> other_ran{false};
    testing::Gate gate;
    stand_in::launch(one, [&] {
      gate.pass();
      done.push_back(1);
    });
    stand_in::launch(nullptr, [&] { done.push_back(2); });
    stand_in::launch(cudaStreamLegacy, [&] { done.push_back(3); });
    stand_in::launch(one, [&] { done.push_back(4); });
    stand_in::launch(other_, [&] { other_ran = true; });
    EXPECT_TRUE(testing::eventually([&] { return other_ran.load(); }))
        << "a stream that does not block waited";
    gate.open();
    stand_in::drain();
    EXPECT_EQ(done, (std::vector<int>{1, 2, 3, 4}));
  }
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  EXPECT_EQ(stand_in::live(), 5U) << "default streams are nobody's to give back";
}

TEST_F(StandInCuda, EachThreadHasADefaultStreamOfItsOwn) {
  testing::Gate gate;
  stand_in::launch(cudaStreamPerThread, [&gate] { gate.pass(); });
  std::thread([] {
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess) << "it waited for another";
  }).join();
  gate.open();
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
}

TEST_F(StandInCuda, KeepsTheLastErrorOfEachThread) {
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess) << "what succeeds leaves it";
  std::thread([] { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  testing::Gate gate;
  stand_in::launch(stream_, [&gate] { gate.pass(); });
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady) << "the runtime takes that for an error";
  EXPECT_FALSE(has_passed(event_));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the driver has no last error";
  gate.open();
  stand_in::drain();
}

TEST_F(StandInCuda, TheDriverMakesNoContextForAThreadThatAsks) {
  std::thread([this] {
    EXPECT_FALSE(is_current(0));
    EXPECT_THROW((void)is_capturing(stream_), Error);
    EXPECT_THROW((void)milliseconds_between(event_, event_), Error);
    EXPECT_FALSE(is_current(0)) << "it was made current";
    EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
    EXPECT_TRUE(is_current(0)) << "the runtime makes it current";
    EXPECT_TRUE(has_passed(event_));
  }).join();
}

TEST_F(StandInCuda, StreamsHaveTheirPriorities) {
  cudaStream_t urgent = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -5), cudaSuccess);
  EXPECT_THAT(stand_in::stream_priorities(), ::testing::UnorderedElementsAre(0, 0, -5));
  EXPECT_EQ(cudaStreamDestroy(urgent), cudaSuccess);
}

TEST(StandInFailure, OfADeviceStays) {
  stand_in::reset();
  void* memory = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  stand_in::break_devices(cudaErrorIllegalAddress);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorIllegalAddress);
  EXPECT_THROW((void)has_passed(event), Error);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "such an error is not taken back";
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(stand_in::live(), 2U);
  stand_in::reset();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(StandInCuda, AnOldDriverHasNoDevices) {
  stand_in::install_driver(CUDART_VERSION - 1000);
  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaDriverGetVersion(&count), cudaSuccess);
  EXPECT_EQ(count, CUDART_VERSION - 1000);
}

TEST_F(StandInCuda, NoticesWhatIsNotGivenBack) {
  EXPECT_THROW(stand_in::reset(), std::logic_error);
}

TEST(StandInContexts, AreMadeWhereTheyAreNeeded) {
  stand_in::reset(3);
  const auto device = [] {
    int current = 7;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    return current;
  };
  EXPECT_EQ(device(), 0);
  EXPECT_EQ(cudaInitDevice(1, 0, 0), cudaSuccess);
  EXPECT_EQ(device(), 0) << "it was made current";
  push_context(2);
  EXPECT_EQ(device(), 2);
  push_context(1);
  EXPECT_EQ(device(), 1);
  pop_context(1);
  EXPECT_EQ(device(), 2);
  pop_context(2);
  EXPECT_EQ(device(), 0);
  EXPECT_EQ(stand_in::devices_used(), (std::set<int>{1, 2})) << "to ask makes no context";
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  EXPECT_EQ(stand_in::devices_used(), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  stand_in::reset();
}

}  // namespace
}  // namespace millrace
