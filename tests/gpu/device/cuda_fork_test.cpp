// SPDX-License-Identifier: Apache-2.0
//
// A child of fork() has neither the GPU nor pages that it copies from. It releases both at once.
#include <gmock/gmock.h>
#include <millrace/cuda_device.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "device/deferred_free.h"
#include "gpu/device/cuda_run.h"
#include "loader/pipeline/blocking_call_of.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::blocking_call_of;
using testing::CudaPipeline;
using testing::error_of;
using testing::eventually;
using ::testing::HasSubstr;
namespace stand_in = testing::stand_in;

class CudaFork : public CudaPipeline {};

/// Exit status of a child of fork() that calls `act`; -1 if it hangs.
template <typename Act>
int status_of_child(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  if (!eventually([&] { return waitpid(child, &status, WNOHANG) == child; })) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Whether all pages of the memory are mapped in this process.
bool is_mapped(const Memory& memory) {
  std::array<unsigned char, 64> resident{};
  return mincore(memory.data(), memory.bytes(), resident.data()) == 0;
}

TEST_F(CudaFork, AChildHasNoPinnedPages) {
  CudaDevice device;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'000}}) {
    const Memory pinned = device.allocate_host(bytes, {});
    EXPECT_TRUE(is_mapped(pinned));
    EXPECT_EQ(status_of_child([&] { EXPECT_FALSE(is_mapped(pinned)); }), 0);
    EXPECT_TRUE(is_mapped(pinned));
  }
}

TEST_F(CudaFork, AChildGivesNothingBack) {
  std::optional<CudaDevice> device(std::in_place);
  Memory pinned = device->allocate_host(1000, {});
  Memory memory = device->allocate_device(1000);
  std::optional<CudaStream> stream(std::in_place, 0);
  std::unique_ptr<Event> event = device->make_timed_event();
  EXPECT_EQ(status_of_child([&] {
              EXPECT_EQ(blocking_call_of([&] {
                          pinned = {};
                          memory = {};
                          event.reset();
                          stream.reset();
                          device.reset();
                        }),
                        "");
              EXPECT_THAT(error_of([] { const CudaDevice again; }).what(),
                          HasSubstr("child of fork()"));
            }),
            0);
}

TEST_F(CudaFork, AChildsErrorsNameTheFork) {
  CudaDevice device;
  CudaStream stream(0);
  const std::unique_ptr<Event> event = device.make_event();
  EXPECT_EQ(status_of_child([&] {
              // As CUDA answers there. The stand-in itself would work in a child.
              for (const char* call : {"cudaGetDeviceCount", "cudaGetDevice"})
                stand_in::fail(call, 1, cudaErrorInitializationError, true);
              const auto named = [](const auto& use) {
                EXPECT_THAT(error_of(use).what(), HasSubstr("child of fork()"));
              };
              named([] { const CudaDevice again; });
              named([&] { (void)device.make_stream(); });
              named([&] { (void)device.allocate_device(1000); });
              named([&] { stream.record(*event); });
              named([&] { (void)event->complete(); });
            }),
            0);
  EXPECT_TRUE(event->complete());
}

/// Forks while deferred frees are running. Their mutex may be locked by a thread that does not
/// exist in the child, and pending frees never happen there. Returns the status of the first child
/// that fails, or 0.
template <typename Act>
int status_of_children(Act act) {
  CudaDevice device;
  CudaStream other(0);
  testing::Gate gate;
  stand_in::launch(other.handle(), [&gate] { gate.pass(); });
  Memory on_its_way = device.allocate_device(1000);
  on_its_way = {};
  std::atomic<bool> ended{false};
  int status = 0;
  {
    std::jthread busy([&] {
      while (!ended) DeallocationQueue::of(0)->remove_user();
    });
    for (int round = 0; round < 50 && status == 0; ++round) {
      Memory memory = device.allocate_host(1000, {});
      status = status_of_child([&] { act(memory); });
    }
    ended = true;
  }
  gate.open();
  return status;
}

TEST_F(CudaFork, AChildDoesNotHang) {
  EXPECT_EQ(status_of_children([](Memory& memory) { memory = {}; }), 0);
}

TEST_F(CudaFork, AChildEndsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_in_children = [] {
    std::atexit([] { std::_Exit(0); });  // called after the queue of deferred frees is closed
    std::_Exit(status_of_children([](Memory&) { std::exit(0); }));
  };
  EXPECT_EXIT(end_in_children(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace
