// SPDX-License-Identifier: Apache-2.0
#include "command/run/threads.h"

#include <gmock/gmock.h>
#include <millrace/error.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "support/sanitizers.h"

namespace millrace::cli {
namespace {

TEST(Threads, EachNumberHasOne) {
  std::array<int, 3> calls{};
  std::array<bool, 3> stopped{};
  run_on_threads(calls.size(), [&](std::size_t number, const std::stop_token& stop) {
    ++calls[number];
    stopped[number] = stop.stop_requested();
  });
  EXPECT_THAT(calls, ::testing::Each(1));
  EXPECT_THAT(stopped, ::testing::Each(false));
}

TEST(Threads, ThatTheSystemRefusesAreAnError) {
#if defined(MILLRACE_TSAN) || defined(MILLRACE_ASAN)
  GTEST_SKIP() << "the sanitizers need more memory than is left here";
#endif
  const auto few_threads = [] {
    // Leaves address space for some of the threads' stacks, but not for all.
    const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    try {
      run_on_threads(1000, [](std::size_t, const std::stop_token& stop) {
        while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(7);
    }
    std::_Exit(8);
  };
  EXPECT_EXIT(few_threads(), ::testing::ExitedWithCode(7), "of 1000 cannot be started");
}

}  // namespace
}  // namespace millrace::cli
