// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/runtime_services.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::error_of;
using testing::eventually;
using ::testing::HasSubstr;

constexpr std::size_t unit = std::size_t{64} << 10;

/// Counts its allocations, has a limited amount of memory, and may forbid keeping it.
class CountingDevice final : public Device {
 public:
  struct Counts {
    std::size_t allocations = 0;
    std::atomic<std::size_t> bytes{0};
    std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
  };

  explicit CountingDevice(std::string name = "counting", bool keeps = true)
      : name_(std::move(name)), keeps_(keeps) {}
  std::string name() const override { return name_; }
  bool copies() const override { return false; }
  bool host_memory_is_reusable() const override { return keeps_; }
  Memory allocate_host(std::size_t bytes, const NumaNode& /*node*/) override {
    ++counts->allocations;
    if (counts->bytes + bytes > counts->max_bytes)
      throw Error(ErrorCode::device, "counting: no memory left");
    counts->bytes += bytes;
    auto* const data = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(unit)));
    return {data, bytes, [bytes, counts = counts](std::byte* freed) {
              counts->bytes -= bytes;
              ::operator delete(freed, std::align_val_t(unit));
            }};
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return host_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }

  const std::shared_ptr<Counts> counts = std::make_shared<Counts>();

 private:
  const std::string name_;
  const bool keeps_;
  HostDevice host_;
};

/// A pipeline's memory: `count` pieces of `bytes` bytes.
std::vector<Memory> pieces(Runtime& runtime, Device& device, std::size_t count, std::size_t bytes,
                           int node = 0) {
  std::vector<Memory> taken;
  for (std::size_t piece = 0; piece < count; ++piece)
    taken.push_back(RuntimeServices::of(runtime).host_memory(device, bytes, NumaNode{node, {}}));
  return taken;
}

class KeptHostMemory : public ::testing::Test {
 protected:
  Memory host_memory(Device& device, std::size_t bytes, const NumaNode& node) {
    return RuntimeServices::of(*runtime_).host_memory(device, bytes, node);
  }

  std::shared_ptr<Runtime> runtime_ = make_runtime({.workers = 1});
  CountingDevice device_;
  CountingDevice::Counts& counts_ = *device_.counts;
};

TEST_F(KeptHostMemory, IsHandedOutAgain) {
  std::byte* first = nullptr;
  for (int run = 0; run < 3; ++run) {
    const Memory memory = host_memory(device_, 10 * unit + 5, {});
    EXPECT_EQ(memory.bytes(), 10 * unit + 5);
    if (first == nullptr) first = memory.data();
    EXPECT_EQ(memory.data(), first);
    EXPECT_EQ(runtime_->kept_host_bytes(), 0U);
  }
  EXPECT_EQ(counts_.allocations, 1U);
  EXPECT_EQ(runtime_->kept_host_bytes(), 10 * unit + 5);
}

TEST_F(KeptHostMemory, ServesPipelinesThatNeedLess) {
  pieces(*runtime_, device_, 4, 10 * unit);
  // Three from each; the rest of one unit is too small.
  const std::vector<Memory> small = pieces(*runtime_, device_, 12, 3 * unit - 7);
  EXPECT_EQ(counts_.allocations, 4U);
  EXPECT_EQ(runtime_->kept_host_bytes(), 4 * unit);
  std::vector<std::pair<std::byte*, std::byte*>> places;
  for (const Memory& memory : small) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % unit, 0U);
    for (const auto& [begin, end] : places)
      EXPECT_TRUE(memory.data() >= end || memory.data() + memory.bytes() <= begin);
    places.emplace_back(memory.data(), memory.data() + memory.bytes());
  }
}

TEST_F(KeptHostMemory, IsWholeAgainWhateverOrderItsPiecesComeBackIn) {
  const std::byte* const whole = host_memory(device_, 6 * unit, {}).data();
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    std::vector<Memory> parts = pieces(*runtime_, device_, 3, 2 * unit);
    for (const std::size_t part : order) parts[part] = {};
    EXPECT_EQ(host_memory(device_, 6 * unit, {}).data(), whole);
  }
  EXPECT_EQ(counts_.allocations, 1U);
}

TEST_F(KeptHostMemory, TheSmallestThatFitsIsTaken) {
  for (const bool small_first : {true, false}) {
    Memory large = host_memory(device_, 9 * unit, {});
    Memory small = host_memory(device_, 3 * unit, {});
    const std::byte* const data = small.data();
    (small_first ? small : large) = {};
    (small_first ? large : small) = {};
    const Memory part = host_memory(device_, 2 * unit, {});
    EXPECT_EQ(part.data(), data);
    const Memory next = host_memory(device_, 9 * unit, {});
    EXPECT_EQ(counts_.allocations, 2U);
  }
}

TEST_F(KeptHostMemory, NodesAndDevicesAreApart) {
  CountingDevice other("another");
  CountingDevice same;
  std::optional<Memory> memory(host_memory(device_, unit, NumaNode{0, {}}));
  const std::byte* const data = memory->data();
  memory.reset();
  EXPECT_NE(host_memory(device_, unit, NumaNode{1, {}}).data(), data);
  EXPECT_NE(host_memory(other, unit, NumaNode{0, {}}).data(), data);
  EXPECT_EQ(runtime_->kept_host_bytes(), 3 * unit);
  EXPECT_EQ(host_memory(same, unit, NumaNode{0, {}}).data(), data) << "of the same name";
  EXPECT_EQ(same.counts->allocations, 0U);
}

// Pipelines that need more than the last one get memory that replaces its memory.
TEST_F(KeptHostMemory, IsNotMoreThanWasInUseAtOneTime) {
  pieces(*runtime_, device_, 4, 10 * unit);
  EXPECT_EQ(counts_.bytes, 40 * unit);
  {
    std::vector<Memory> larger;
    for (std::size_t piece = 1; piece <= 4; ++piece) {
      larger.push_back(host_memory(device_, 20 * unit, {}));
      EXPECT_LE(counts_.bytes, std::max(40 * unit, piece * 20 * unit));
    }
  }
  EXPECT_EQ(runtime_->kept_host_bytes(), 80 * unit);
  const std::size_t allocations = counts_.allocations;
  for (int epoch = 0; epoch < 3; ++epoch) {
    pieces(*runtime_, device_, 4, 10 * unit);
    pieces(*runtime_, device_, 4, 20 * unit);
  }
  EXPECT_EQ(counts_.allocations, allocations);
  const std::vector<Memory> training = pieces(*runtime_, device_, 4, 10 * unit);
  for (int epoch = 0; epoch < 3; ++epoch) pieces(*runtime_, device_, 4, 20 * unit);
  EXPECT_LE(counts_.allocations, allocations + 4) << "each evaluation allocates anew";
}

TEST_F(KeptHostMemory, HasALimit) {
  runtime_ = make_runtime({.workers = 1, .kept_host_bytes = 25 * unit});
  pieces(*runtime_, device_, 4, 10 * unit);
  EXPECT_EQ(runtime_->kept_host_bytes(), 20 * unit);
  EXPECT_EQ(counts_.bytes, 20 * unit);
}

TEST_F(KeptHostMemory, IsNoneWhereNoneIsWanted) {
  runtime_ = make_runtime({.workers = 1, .kept_host_bytes = 0});
  pieces(*runtime_, device_, 2, unit);
  EXPECT_EQ(counts_.bytes, 0U);
  runtime_ = make_runtime({.workers = 1});
  CountingDevice own_memory("own memory", false);
  pieces(*runtime_, own_memory, 2, unit);
  EXPECT_EQ(own_memory.counts->bytes, 0U) << "the device does not allow it";
  EXPECT_EQ(runtime_->kept_host_bytes(), 0U);
}

TEST_F(KeptHostMemory, IsFreedWhenAnAllocationFails) {
  pieces(*runtime_, device_, 4, 10 * unit);
  pieces(*runtime_, device_, 1, 10 * unit, 1);
  counts_.max_bytes = 60 * unit;
  {
    const std::vector<Memory> large = pieces(*runtime_, device_, 1, 60 * unit, 1);
    EXPECT_EQ(counts_.bytes, 60 * unit);
    const Error error = error_of([&] { (void)host_memory(device_, unit, {}); });
    EXPECT_THAT(error.what(), HasSubstr("no memory left"));
  }
  pieces(*runtime_, device_, 4, 10 * unit);
  EXPECT_EQ(counts_.bytes, 40 * unit);
}

TEST_F(KeptHostMemory, IsSoundWhereAnAllocationFailsTwice) {
  pieces(*runtime_, device_, 4, 10 * unit);
  counts_.max_bytes = 60 * unit;
  const Error error = error_of([&] { (void)host_memory(device_, 61 * unit, {}); });
  EXPECT_THAT(error.what(), HasSubstr("no memory left"));
  EXPECT_EQ(counts_.bytes, 0U) << "what was kept is freed for the second attempt";
  EXPECT_EQ(runtime_->kept_host_bytes(), 0U);
  pieces(*runtime_, device_, 4, 10 * unit);
  EXPECT_EQ(runtime_->kept_host_bytes(), 40 * unit);
}

TEST_F(KeptHostMemory, GoesWithTheRuntime) {
  std::vector<Memory> memory = pieces(*runtime_, device_, 2, 10 * unit);
  memory[0] = {};
  Memory part = host_memory(device_, unit, {});
  Memory rest = host_memory(device_, 8 * unit, {});
  pieces(*runtime_, device_, 1, 30 * unit);
  runtime_.reset();
  EXPECT_EQ(counts_.bytes, 20 * unit) << "what is in use stays";
  memory.clear();
  rest = {};
  EXPECT_EQ(counts_.bytes, 10 * unit);
  part = {};
  EXPECT_EQ(counts_.bytes, 0U);
}

TEST_F(KeptHostMemory, MayBeTakenByManyThreads) {
  HostDevice device;
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 1; thread <= 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::size_t round = 0; round < 200; ++round) {
          const Memory memory = host_memory(device, thread * unit, {});
          *memory.data() = static_cast<std::byte>(thread);
          std::this_thread::yield();
          EXPECT_EQ(*memory.data(), static_cast<std::byte>(thread));
        }
      });
  }
  EXPECT_GE(runtime_->kept_host_bytes(), 4 * unit);
}

// A thread that the child does not have may hold the pool's mutex.
TEST_F(KeptHostMemory, AChildOfForkLetsGoOfItAtOnce) {
  HostDevice device;
  std::atomic<bool> ended{false};
  std::jthread busy([&] {
    while (!ended) (void)host_memory(device, unit, {});
  });
  for (int round = 0; round < 50; ++round) {
    Memory memory = host_memory(device_, unit, {});
    const pid_t child = fork();
    if (child == 0) {
      memory = {};
      memory = host_memory(device_, unit, {});
      *memory.data() = std::byte{1};
      _exit(0);
    }
    int status = 1;
    const bool left = eventually([&] { return waitpid(child, &status, WNOHANG) == child; });
    if (!left) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    EXPECT_TRUE(left && WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round;
    if (!left) break;
  }
  ended = true;
}

}  // namespace
}  // namespace millrace
