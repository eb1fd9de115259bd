// SPDX-License-Identifier: Apache-2.0
#include "page/timeline.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "support/well_formed.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

constexpr std::int64_t millisecond = 1'000'000;

TraceSpan span(const char* name, std::int64_t begin_ms, std::int64_t end_ms,
               std::uint64_t batch = TraceSpan::none, std::uint64_t record = TraceSpan::none) {
  return {.name = name,
          .begin_ns = begin_ms * millisecond,
          .end_ns = end_ms * millisecond,
          .batch = batch,
          .record = record};
}

TraceLane lane(std::size_t group, std::string name, std::vector<TraceSpan> spans = {},
               std::vector<TraceValue> values = {}) {
  return {group, std::move(name), std::move(spans), std::move(values)};
}

TEST(Timeline, DrawsEverySpanWithItsBatchAndRecord) {
  cli::TracePicture picture{.groups = {"millrace", "trainer"}};
  picture.lanes = {
      lane(0, "worker 0",
           {span("read", 0, 1, 0, 70), span("decode", 1, 4, 0, 70), span("read", 4, 6, 1, 3)}),
      lane(1, "device steps", {span("step", 5, 10, 0)})};
  const cli::Timeline timeline = cli::draw_timeline(picture);
  EXPECT_EQ(fault_in_markup(timeline.html), "");
  EXPECT_EQ(timeline.text, "All 4 spans of 10.0 ms.");
  EXPECT_THAT(timeline.html, HasSubstr("data-length=\"10000\""));
  // Relative moves in microseconds; numbers as differences.
  EXPECT_THAT(timeline.html, HasSubstr("data-name=\"read\" data-batch=\"0 1\" data-record=\"70 "
                                       "-67\" d=\"M0 58m0 0h1000m3000 0h2000\""));
  EXPECT_THAT(
      timeline.html,
      HasSubstr(
          "data-name=\"decode\" data-batch=\"0\" data-record=\"70\" d=\"M0 58m1000 0h3000\""));
  EXPECT_THAT(timeline.html, HasSubstr("data-name=\"step\" data-batch=\"0\" d="));
  EXPECT_THAT(timeline.html, HasSubstr(">10 ms</text>"));
  EXPECT_THAT(timeline.html, Not(HasSubstr("--trace")));
}

TEST(Timeline, DrawsCountersAsCurves) {
  cli::TracePicture picture{.groups = {"millrace"}};
  picture.lanes = {lane(0, "free slots", {}, {{0, 4}, {2 * millisecond, 3}, {5 * millisecond, 0}})};
  const cli::Timeline timeline = cli::draw_timeline(picture);
  EXPECT_EQ(fault_in_markup(timeline.html), "");
  EXPECT_THAT(timeline.html, HasSubstr("data-times=\"0 2000 3000\" data-values=\"4 -1 -3\""));
  EXPECT_THAT(timeline.html, HasSubstr(">4</text>"));
}

TEST(Timeline, ShowsTheLastStretchAndSaysWhatIsLeftOut) {
  cli::TracePicture picture{.groups = {"millrace"}, .dropped = 5};
  picture.lanes = {lane(0, "worker 0"), lane(0, "worker 1"), lane(0, "ready batches")};
  for (std::int64_t at = 0; at < 100; ++at)
    picture.lanes[static_cast<std::size_t>(at % 2)].spans.push_back(
        span("decode", 10 * at, 10 * at + 10, static_cast<std::uint64_t>(at)));
  picture.lanes[2].values = {{100 * millisecond, 2}, {995 * millisecond, 1}};

  const cli::Timeline by_time = cli::draw_timeline(picture, {.nanoseconds = 200 * millisecond});
  EXPECT_EQ(by_time.text,
            "The last 200 ms of 1.00 s: 20 of 100 spans. 5 further spans and values did not fit "
            "into the trace.");
  EXPECT_THAT(by_time.html, HasSubstr("data-begin=\"800000\" data-length=\"200000\""));
  EXPECT_THAT(by_time.html, HasSubstr("data-batch=\"80 2 2 2 2 2 2 2 2 2\""));
  EXPECT_THAT(by_time.html, HasSubstr("data-times=\"0 195000\" data-values=\"2 -1\""));
  EXPECT_THAT(by_time.html, HasSubstr("bench --trace FILE"));

  const cli::Timeline by_events = cli::draw_timeline(picture, {.events = 11});
  EXPECT_THAT(by_events.text, HasSubstr("10 of 100 spans"));

  const cli::Timeline by_lanes = cli::draw_timeline(picture, {.worker_lanes = 1});
  EXPECT_THAT(by_lanes.text, HasSubstr("1 further worker is not drawn."));
  EXPECT_THAT(by_lanes.html, Not(HasSubstr("worker 1")));
  EXPECT_THAT(by_lanes.html, HasSubstr("ready batches"));
}

TEST(Timeline, OfNothingIsNothing) {
  const cli::Timeline timeline =
      cli::draw_timeline({.groups = {"millrace"}, .lanes = {lane(0, "worker 0")}});
  EXPECT_EQ(timeline.html, "");
  EXPECT_EQ(timeline.text, "The trace holds nothing.");
}

}  // namespace
}  // namespace millrace
