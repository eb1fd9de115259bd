// SPDX-License-Identifier: Apache-2.0
//
// Tests of pools that cannot be started.
#include <gtest/gtest.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "support/sanitizers.h"

namespace millrace {
namespace {

TEST(WorkerPool, ThreadsThatTheSystemRefusesAreAnError) {
#if defined(MILLRACE_TSAN) || defined(MILLRACE_ASAN)
  GTEST_SKIP() << "the sanitizers need more memory than is left here";
#endif
  const auto few_threads = [] {
    // Leaves address space for some of the threads' stacks, but not for all.
    const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    try {
      WorkerPool pool(0, 1000, {});
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(7);
    }
    std::_Exit(8);
  };
  EXPECT_EXIT(few_threads(), ::testing::ExitedWithCode(7), "of 1000 workers cannot be started");
}

TEST(WorkerPool, AddressSpaceThatTheSystemRefusesToTheArenaIsAnError) {
#if defined(MILLRACE_TSAN) || defined(MILLRACE_ASAN)
  GTEST_SKIP() << "the sanitizers need more memory than is left here";
#endif
  const auto little_memory = [] {
    pthread_attr_t small_stacks;
    pthread_attr_init(&small_stacks);
    pthread_attr_setstacksize(&small_stacks, std::size_t{256} << 10);
    pthread_setattr_default_np(&small_stacks);
    const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    // Leaves 3 MiB, enough for a thread.
    constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    std::vector<void*> pieces;
    const auto take = [&] {
      pieces.push_back(mmap(nullptr, piece_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      return pieces.back() != MAP_FAILED;
    };
    pieces.reserve(2048);
    while (take()) continue;
    for (std::size_t piece = 2; piece <= 4; ++piece)
      munmap(pieces[pieces.size() - piece], piece_bytes);
    try {
      WorkerPool pool(0, 1, {});
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(7);
    }
    std::_Exit(8);
  };
  EXPECT_EXIT(little_memory(), ::testing::ExitedWithCode(7),
              "a pool of 1 workers cannot be started: the system refuses 4194304 bytes");
}

TEST(WorkerPool, RefusesToHaveNoWorkers) { EXPECT_THROW(WorkerPool(0, 0, {}), std::exception); }

}  // namespace
}  // namespace millrace
