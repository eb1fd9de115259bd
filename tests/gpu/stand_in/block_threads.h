// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace millrace::testing::stand_in {

/// Runs the threads of a block as fibres of the calling thread, so that kernels can have barriers,
/// warp shuffles and votes. A fibre runs until it waits for others. Odd blocks run their threads in
/// the reverse order, so a kernel that lacks a barrier gives different results in some block.
///
/// Stricter than a GPU: a barrier that can never be complete ends the program with a message. So
/// does a mask of a warp that names a thread that has returned.
class BlockThreads {
 public:
  static constexpr unsigned warp_threads = 32;

  BlockThreads();
  ~BlockThreads();
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;

  /// Calls `thread` once for each of `threads` threads. Before a thread runs on, `resumed` is
  /// called with its number.
  void run(unsigned threads, bool reverse, const std::function<void()>& thread,
           const std::function<void(unsigned)>& resumed);

  // For kernels: the calling thread is one of the block that runs.

  /// Waits for all threads of the block that have not returned.
  static void wait_for_block();
  /// Waits for the threads of the warp that `mask` names. The caller must be one of them.
  static void wait_for_warp(std::uint32_t mask);
  /// Gives `value` to the threads of the warp that `mask` names and returns the value of `lane`,
  /// which must be one of them.
  static std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, unsigned lane);
  /// Returns a mask of the threads that `mask` names and whose `predicate` holds.
  static std::uint32_t vote(std::uint32_t mask, bool predicate);
  /// The calling thread's number in its warp.
  static unsigned lane();

 private:
  class Fibres;
  std::unique_ptr<Fibres> fibres_;
};

}  // namespace millrace::testing::stand_in
