// SPDX-License-Identifier: Apache-2.0
#include "stand_in/block_threads.h"

#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "support/sanitizers.h"

#ifdef MILLRACE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace millrace::testing::stand_in {
namespace {

namespace context = boost::context;

// Sanitizers need several times as much.
#if defined(MILLRACE_ASAN) || defined(MILLRACE_TSAN)
constexpr std::size_t stack_bytes = std::size_t{1} << 17U;
#else
constexpr std::size_t stack_bytes = std::size_t{1} << 15U;
#endif

[[noreturn]] void fail(const char* message) {
  std::fprintf(stderr, "stand-in for CUDA: %s\n", message);
  std::abort();
}

/// Memory that outlives the fibres that use it as their stack.
struct KeptStack {
  context::stack_context at;
  context::stack_context allocate() const { return at; }
  void deallocate(context::stack_context& /*stack*/) const {}
};

}  // namespace

class BlockThreads::Fibres {
 public:
  static thread_local Fibres* running;

  void run(unsigned threads, bool reverse, const std::function<void()>& thread,
           const std::function<void(unsigned)>& resumed) {
    threads_.resize(threads);
    warps_.assign((threads + warp_threads - 1) / warp_threads, {});
    while (stacks_.size() < threads) stacks_.push_back(std::make_unique_for_overwrite<Stack>());
    alive_ = threads;
    at_barrier_ = 0;
    Fibres* const outer = std::exchange(running, this);
    for (unsigned number = 0; number < threads; ++number) start(number, thread);
    while (alive_ > 0) {
      progress_ = false;
      for (unsigned n = 0; n < threads; ++n) {
        const unsigned number = reverse ? threads - 1 - n : n;
        if (threads_[number].state != State::ready) continue;
        progress_ = true;
        current_ = number;
        resumed(number);
        resume(threads_[number]);
      }
      if (!progress_) fail("threads of a block wait for a barrier that others do not reach");
    }
    running = outer;
  }

  void wait_for_block() {
    threads_[current_].state = State::at_block_barrier;
    ++at_barrier_;
    release_block();
    wait();
  }

  void wait_for_warp(std::uint32_t mask) {
    Warp& warp = warps_[current_ / warp_threads];
    const std::uint32_t own = 1U << lane();
    if ((mask & own) == 0) fail("a thread waits for a mask of its warp without itself");
    if ((mask & warp.ended) != 0 || (mask & ~threads_of(current_ / warp_threads)) != 0)
      fail("a thread waits for a thread of its warp that has returned or never was");
    warp.arrived |= own;
    warp.masks[lane()] = mask;
    threads_[current_].state = State::at_warp_barrier;
    if ((warp.arrived & mask) == mask) {
      for (unsigned other = 0; other < warp_threads; ++other) {
        if ((mask >> other & 1U) == 0) continue;
        if (warp.masks[other] != mask) fail("threads of a warp wait with different masks");
        threads_[current_ - lane() + other].state = State::ready;
      }
      warp.arrived &= ~mask;
    }
    wait();
  }

  std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, unsigned from) {
    if (from >= warp_threads || (mask >> from & 1U) == 0)
      fail("a thread reads a value of a thread of its warp that does not take part");
    std::array<std::uint64_t, warp_threads>& values = warps_[current_ / warp_threads].values;
    values[lane()] = value;
    wait_for_warp(mask);
    const std::uint64_t result = values[from];
    wait_for_warp(mask);
    return result;
  }

  std::uint32_t vote(std::uint32_t mask, bool predicate) {
    std::array<std::uint64_t, warp_threads>& values = warps_[current_ / warp_threads].values;
    values[lane()] = predicate ? 1 : 0;
    wait_for_warp(mask);
    std::uint32_t result = 0;
    for (unsigned other = 0; other < warp_threads; ++other)
      if ((mask >> other & 1U) != 0 && values[other] != 0) result |= 1U << other;
    wait_for_warp(mask);
    return result;
  }

  unsigned lane() const { return current_ % warp_threads; }

 private:
  enum class State : std::uint8_t { ready, at_block_barrier, at_warp_barrier, ended };
  struct alignas(64) Stack {
    std::array<std::byte, stack_bytes> bytes;
  };
  struct Thread {
    context::fiber fibre;
    State state = State::ready;
    const void* bottom = nullptr;
  };
  struct Warp {
    /// Threads that wait for others of the warp, and the mask of each.
    std::uint32_t arrived = 0;
    std::array<std::uint32_t, warp_threads> masks{};
    std::uint32_t ended = 0;
    std::array<std::uint64_t, warp_threads> values{};
  };

  std::uint32_t threads_of(unsigned warp) const {
    const std::size_t count = threads_.size() - std::size_t{warp} * warp_threads;
    return count >= warp_threads ? UINT32_MAX : (1U << count) - 1;
  }

  void start(unsigned number, const std::function<void()>& thread) {
    Stack& stack = *stacks_[number];
    context::stack_context at;
    at.size = stack_bytes;
    at.sp = stack.bytes.data() + stack_bytes;
    threads_[number].state = State::ready;
    threads_[number].bottom = stack.bytes.data();
    threads_[number].fibre = context::fiber(
        std::allocator_arg, KeptStack{at}, [this, number, &thread](context::fiber&& scheduler) {
          arrive_first();
          scheduler_ = std::move(scheduler);
          thread();
          threads_[number].state = State::ended;
          warps_[number / warp_threads].ended |= 1U << (number % warp_threads);
          --alive_;
          release_block();
          leave_for(nullptr, scheduler_bottom_, scheduler_bytes_);
          return std::move(scheduler_);
        });
  }

  void release_block() {
    if (at_barrier_ == 0 || at_barrier_ < alive_) return;
    at_barrier_ = 0;
    for (Thread& thread : threads_)
      if (thread.state == State::at_block_barrier) thread.state = State::ready;
  }

  /// Runs a fibre until it waits or ends.
  void resume(Thread& thread) {
    void* kept = nullptr;
    leave_for(&kept, thread.bottom, stack_bytes);
    thread.fibre = std::move(thread.fibre).resume();
    arrive(kept);
  }

  /// Lets other fibres run until this one's state is `ready`.
  void wait() {
    void* kept = nullptr;
    leave_for(&kept, scheduler_bottom_, scheduler_bytes_);
    scheduler_ = std::move(scheduler_).resume();
    arrive(kept);
  }

#ifdef MILLRACE_ASAN
  // The sanitizer must know which stack is in use.
  static void leave_for(void** kept, const void* bottom, std::size_t bytes) {
    __sanitizer_start_switch_fiber(kept, bottom, bytes);
  }
  static void arrive(void* kept) { __sanitizer_finish_switch_fiber(kept, nullptr, nullptr); }
  void arrive_first() {
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom_, &scheduler_bytes_);
  }
#else
  static void leave_for(void** /*kept*/, const void* /*bottom*/, std::size_t /*bytes*/) {}
  static void arrive(void* /*kept*/) {}
  static void arrive_first() {}
#endif

  std::vector<std::unique_ptr<Stack>> stacks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  /// Where a fibre goes on when it waits.
  context::fiber scheduler_;
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
  unsigned current_ = 0;
  unsigned alive_ = 0;
  unsigned at_barrier_ = 0;
  bool progress_ = false;
};

thread_local BlockThreads::Fibres* BlockThreads::Fibres::running = nullptr;

BlockThreads::BlockThreads() : fibres_(std::make_unique<Fibres>()) {}
BlockThreads::~BlockThreads() = default;

void BlockThreads::run(unsigned threads, bool reverse, const std::function<void()>& thread,
                       const std::function<void(unsigned)>& resumed) {
  fibres_->run(threads, reverse, thread, resumed);
}

void BlockThreads::wait_for_block() { Fibres::running->wait_for_block(); }
void BlockThreads::wait_for_warp(std::uint32_t mask) { Fibres::running->wait_for_warp(mask); }
std::uint64_t BlockThreads::exchange(std::uint32_t mask, std::uint64_t value, unsigned lane) {
  return Fibres::running->exchange(mask, value, lane);
}
std::uint32_t BlockThreads::vote(std::uint32_t mask, bool predicate) {
  return Fibres::running->vote(mask, predicate);
}
unsigned BlockThreads::lane() { return Fibres::running->lane(); }

}  // namespace millrace::testing::stand_in
