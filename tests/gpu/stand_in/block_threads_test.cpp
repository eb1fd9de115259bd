// SPDX-License-Identifier: Apache-2.0
#include "stand_in/block_threads.h"

#include <gmock/gmock.h>

#include <functional>
#include <numeric>
#include <vector>

namespace millrace {
namespace {

using ::testing::Each;
using testing::stand_in::BlockThreads;

/// Runs `thread` with its number, once in each order of a block's threads.
void run_both(unsigned threads, const std::function<void(unsigned)>& thread) {
  BlockThreads block;
  for (const bool reverse : {false, true}) {
    unsigned current = 0;
    block.run(
        threads, reverse, [&] { thread(current); }, [&](unsigned number) { current = number; });
  }
}

TEST(BlockThreads, WaitForTheWholeBlockAtEachBarrier) {
  for (const unsigned threads : {1U, 31U, 32U, 33U, 768U, 1024U}) {
    std::vector<unsigned> values(threads, 1);
    run_both(threads, [&](unsigned number) {
      for (unsigned round = 0; round < 3; ++round) {
        const unsigned neighbours = values[(number + 1) % threads] + values[number];
        BlockThreads::wait_for_block();
        values[number] = neighbours;
        BlockThreads::wait_for_block();
      }
    });
    EXPECT_THAT(values, Each(64U)) << threads << " threads";
  }
}

TEST(BlockThreads, GiveOtherResultsInOneOrderWithoutABarrier) {
  std::vector<std::vector<unsigned>> results;
  std::vector<unsigned> values(40, 0);
  run_both(40, [&](unsigned number) {
    values[number] = number == 0 ? 1 : values[number - 1] + 1;
    if (number == 20) results.push_back(values);
  });
  EXPECT_NE(results.at(0), results.at(1));
}

TEST(BlockThreads, ThatHaveReturnedAreNotWaitedFor) {
  unsigned passed = 0;
  run_both(100, [&](unsigned number) {
    if (number % 3 == 0) return;
    BlockThreads::wait_for_block();
    ++passed;
  });
  EXPECT_EQ(passed, 2U * 66U);
}

TEST(BlockThreads, ExchangeValuesInAWarp) {
  std::vector<std::uint64_t> sums(64, 0);
  run_both(64, [&](unsigned number) {
    const unsigned lane = BlockThreads::lane();
    ASSERT_EQ(lane, number % 32);
    std::uint64_t sum = number;
    for (unsigned delta = 1; delta < 32; delta *= 2) {
      const std::uint64_t before =
          BlockThreads::exchange(UINT32_MAX, sum, lane < delta ? lane : lane - delta);
      if (lane >= delta) sum += before;
    }
    sums[number] = sum;
  });
  std::vector<std::uint64_t> expected(64);
  std::iota(expected.begin(), expected.end(), std::uint64_t{0});
  std::partial_sum(expected.begin(), expected.begin() + 32, expected.begin());
  std::partial_sum(expected.begin() + 32, expected.end(), expected.begin() + 32);
  EXPECT_EQ(sums, expected);
}

TEST(BlockThreads, VoteInAPartOfAWarp) {
  run_both(40, [&](unsigned number) {
    const std::uint32_t half = number % 32 < 16 ? 0xFFFFU : 0xFFFF0000U;
    const std::uint32_t warp = number < 32 ? half : 0xFFU;
    const std::uint32_t votes = BlockThreads::vote(warp, number % 2 == 0);
    EXPECT_EQ(votes, warp & 0x55555555U) << number;
  });
}

TEST(BlockThreadsDeathTest, TellWhatAGpuWouldHangAt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr std::uint32_t all = UINT32_MAX;
  const auto half_waits = [](unsigned number) {
    if (number % 2 == 0)
      BlockThreads::wait_for_block();
    else
      BlockThreads::wait_for_warp(all);
  };
  EXPECT_DEATH(run_both(32, half_waits), "wait for a barrier that others do not reach");
  const auto one_returns = [](unsigned number) {
    if (number != 3) BlockThreads::wait_for_block();
    if (number != 3) BlockThreads::wait_for_warp(all);
  };
  EXPECT_DEATH(run_both(32, one_returns), "has returned or never was");
  EXPECT_DEATH(run_both(31, [](unsigned) { BlockThreads::wait_for_warp(all); }), "never was");
  const auto masks_differ = [](unsigned number) { BlockThreads::wait_for_warp(number + 1); };
  EXPECT_DEATH(run_both(3, masks_differ), "different masks|without itself");
  EXPECT_DEATH(run_both(4, [](unsigned) { BlockThreads::wait_for_warp(8); }), "without itself");
  EXPECT_DEATH(run_both(4, [](unsigned) { BlockThreads::exchange(0xF, 1, 9); }),
               "does not take part");
}

}  // namespace
}  // namespace millrace
