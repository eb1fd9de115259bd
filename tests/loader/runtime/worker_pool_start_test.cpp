// SPDX-License-Identifier: Apache-2.0
//
// Tests of pools that cannot be started.
#include <gtest/gtest.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>

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

TEST(WorkerPool, RefusesToHaveNoWorkers) { EXPECT_THROW(WorkerPool(0, 0, {}), std::exception); }

}  // namespace
}  // namespace millrace
