// SPDX-License-Identifier: Apache-2.0
#include "report/histogram.h"

#include <gtest/gtest.h>

#include <thread>

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(Histogram, TellsPercentilesToOnePercent) {
  Histogram histogram;
  for (int microseconds = 1; microseconds <= 10'000; ++microseconds)
    histogram.add(microseconds * 1us);
  const Durations durations = histogram.summary();
  EXPECT_EQ(durations.count, 10'000U);
  EXPECT_DOUBLE_EQ(durations.total_ms, 50'005);
  EXPECT_NEAR(durations.p50_ms, 5.0, 0.05);
  EXPECT_NEAR(durations.p95_ms, 9.5, 0.095);
  EXPECT_NEAR(durations.p99_ms, 9.9, 0.099);
  EXPECT_DOUBLE_EQ(durations.max_ms, 10);
}

TEST(Histogram, CountsWhatIsOutOfRange) {
  Histogram histogram;
  histogram.add(-5ns);
  histogram.add(100h);
  const Durations durations = histogram.summary();
  EXPECT_EQ(durations.count, 2U);
  EXPECT_EQ(durations.p50_ms, 0);
  EXPECT_DOUBLE_EQ(durations.max_ms, 7'200'000);
}

TEST(Histogram, TakesAwayAnEarlierState) {
  Histogram histogram;
  histogram.add(9s);
  const Histogram earlier = histogram;
  histogram.add(2ms);
  histogram.subtract(earlier);
  EXPECT_EQ(histogram.summary().count, 1U);
  EXPECT_DOUBLE_EQ(histogram.summary().total_ms, 2);
  EXPECT_NEAR(histogram.summary().max_ms, 2, 0.02);
  histogram.clear();
  EXPECT_EQ(histogram.summary().count, 0U);
  EXPECT_EQ(histogram.summary().max_ms, 0);
}

TEST(Histogram, MayBeReadWhileAThreadAdds) {
  constexpr std::uint64_t durations = 20'000;
  Histogram histogram;
  std::jthread adder([&histogram] {
    for (std::uint64_t number = 0; number < durations; ++number) histogram.add(1us);
  });
  std::uint64_t before = 0;
  while (before < durations) {
    Histogram sum;
    histogram.add_to(sum);
    const std::uint64_t count = sum.summary().count;
    EXPECT_GE(count, before);
    before = count;
  }
  Histogram sum;
  adder.join();
  histogram.add_to(sum);
  histogram.add_to(sum);
  EXPECT_EQ(sum.summary().count, 2 * durations);
  EXPECT_DOUBLE_EQ(sum.summary().total_ms, 2.0 * static_cast<double>(durations) / 1e3);
}

}  // namespace
}  // namespace millrace
