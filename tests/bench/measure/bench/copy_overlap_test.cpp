// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "measure/device/copy_rate.h"

namespace millrace::cli {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

std::vector<TraceSpan> spans(const std::vector<std::pair<std::int64_t, std::int64_t>>& times) {
  std::vector<TraceSpan> spans;
  for (const auto& [begin, end] : times) spans.push_back({.begin_ns = begin, .end_ns = end});
  return spans;
}

TEST(HiddenShare, IsAllOfACopyUnderAStep) {
  EXPECT_THAT(hidden_share(spans({{10, 20}}), spans({{0, 100}})), Optional(1.0));
}

TEST(HiddenShare, IsNoneOfACopyBetweenSteps) {
  EXPECT_THAT(hidden_share(spans({{40, 50}}), spans({{0, 40}, {50, 90}})), Optional(0.0));
}

// A copy of 700 us that spans the gap of 15 us between two steps of 100 ms.
TEST(HiddenShare, LeavesOutAShortGapBetweenLongSteps) {
  const auto steps = spans({{0, 100'000'000}, {100'015'000, 200'000'000}});
  EXPECT_THAT(hidden_share(spans({{99'900'000, 100'600'000}}), steps), Optional(685.0 / 700));
}

TEST(HiddenShare, CountsThePartsUnderSeveralSteps) {
  // Under 10..20 and 30..40 and 50..55; not in the gaps.
  EXPECT_THAT(hidden_share(spans({{5, 55}}), spans({{0, 20}, {30, 40}, {50, 90}})),
              Optional(DoubleEq(30.0 / 50)));
}

TEST(HiddenShare, AddsUpCopies) {
  EXPECT_THAT(hidden_share(spans({{0, 10}, {95, 105}, {120, 140}}), spans({{0, 100}, {130, 200}})),
              Optional(DoubleEq(25.0 / 40)));
}

TEST(HiddenShare, LooksAtTheTimeOfStepsOnly) {
  EXPECT_THAT(hidden_share(spans({{0, 60}, {190, 500}}), spans({{50, 100}, {150, 200}})),
              Optional(1.0));
  EXPECT_EQ(hidden_share(spans({{0, 50}, {200, 300}}), spans({{50, 200}})), std::nullopt);
}

TEST(HiddenShare, CountsATimeUnderTwoStepsOnce) {
  EXPECT_THAT(hidden_share(spans({{0, 40}}), spans({{20, 40}, {0, 30}, {0, 25}})), Optional(1.0));
  EXPECT_THAT(hidden_share(spans({{0, 100}}), spans({{0, 30}, {10, 20}, {15, 50}, {99, 100}})),
              Optional(DoubleEq(0.51)));
}

TEST(HiddenShare, IsUnknownWithoutCopiesOrSteps) {
  EXPECT_EQ(hidden_share({}, spans({{0, 10}})), std::nullopt);
  EXPECT_EQ(hidden_share(spans({{0, 10}}), {}), std::nullopt);
  EXPECT_EQ(hidden_share(spans({{5, 5}}), spans({{0, 10}})), std::nullopt);
}

}  // namespace
}  // namespace millrace::cli
