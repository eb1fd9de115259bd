// SPDX-License-Identifier: Apache-2.0
#include "measure/page/timeline.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

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

/// The lanes of a group that a timeline draws.
Json lanes_of(const cli::Section& section, std::size_t group = 0) {
  return Json::parse(section.chart.value().data).at("groups").at(group).at("lanes");
}

TEST(Timeline, HasEverySpanWithItsBatchAndRecord) {
  cli::TracePicture picture{.groups = {"millrace", "trainer"}};
  picture.lanes = {
      lane(0, "worker 0",
           {span("read", 0, 1, 0, 70), span("decode", 1, 4, 0, 70), span("read", 4, 6, 1, 3)}),
      lane(1, "device steps", {span("step", 5, 10, 0)})};
  const cli::Section timeline = cli::timeline_section(picture);
  EXPECT_EQ(timeline.text, "All 4 spans of 10.0 ms.");
  // Gaps and lengths in microseconds; numbers as differences.
  EXPECT_EQ(Json::parse(timeline.chart.value().data), Json::parse(R"({
    "begin": 0, "length": 10000, "groups": [
      {"name": "millrace", "lanes": [{"name": "worker 0", "kinds": [
        {"name": "decode", "spans": [1000, 3000], "batch": [0], "record": [70]},
        {"name": "read", "spans": [0, 1000, 3000, 2000], "batch": [0, 1], "record": [70, -67]}]}]},
      {"name": "trainer", "lanes": [{"name": "device steps", "kinds": [
        {"name": "step", "spans": [5000, 5000], "batch": [0]}]}]}]})"));
  ASSERT_EQ(timeline.tables.size(), 1U);
  EXPECT_TRUE(timeline.tables[0].repeats_chart);
  EXPECT_THAT(timeline.tables[0].rows,
              ElementsAre(ElementsAre("worker 0: decode", "1", "3.00 ms", "3.00 ms"),
                          ElementsAre("worker 0: read", "2", "3.00 ms", "2.00 ms"),
                          ElementsAre("device steps: step", "1", "5.00 ms", "5.00 ms")));
}

TEST(Timeline, TellsSpansWithoutABatchFromThoseWithOne) {
  cli::TracePicture picture{.groups = {"millrace"}};
  picture.lanes = {lane(0, "upload", {span("upload", 0, 1, 3), span("upload", 1, 2)})};
  const Json kind = lanes_of(cli::timeline_section(picture))[0].at("kinds")[0];
  EXPECT_EQ(kind.at("batch"), Json::parse("[3, null]"));
  EXPECT_FALSE(kind.contains("record"));
}

TEST(Timeline, HasCountersAsTheirValues) {
  cli::TracePicture picture{.groups = {"millrace"}};
  picture.lanes = {lane(0, "free slots", {}, {{0, 4}, {2 * millisecond, 3}, {5 * millisecond, 0}})};
  const cli::Section timeline = cli::timeline_section(picture);
  EXPECT_EQ(
      lanes_of(timeline)[0],
      Json::parse(R"({"name": "free slots", "times": [0, 2000, 3000], "values": [4, -1, -3]})"));
  ASSERT_EQ(timeline.tables.size(), 1U);
  EXPECT_THAT(timeline.tables[0].rows, ElementsAre(ElementsAre("free slots", "0", "4")));
}

TEST(Timeline, ShowsTheLastStretchAndSaysWhatIsLeftOut) {
  cli::TracePicture picture{.groups = {"millrace"}, .dropped = 5};
  picture.lanes = {lane(0, "worker 0"), lane(0, "worker 1"), lane(0, "ready batches")};
  for (std::int64_t at = 0; at < 100; ++at)
    picture.lanes[static_cast<std::size_t>(at % 2)].spans.push_back(
        span("decode", 10 * at, 10 * at + 10, static_cast<std::uint64_t>(at)));
  picture.lanes[2].values = {{100 * millisecond, 2}, {995 * millisecond, 1}};

  const cli::Section by_time = cli::timeline_section(picture, {.nanoseconds = 200 * millisecond});
  EXPECT_THAT(by_time.text, ::testing::StartsWith(
                                "The last 200 ms of 1.00 s: 20 of 100 spans. 5 further spans and "
                                "values did not fit into the trace."));
  EXPECT_THAT(by_time.text, HasSubstr("bench --trace FILE"));
  const Json data = Json::parse(by_time.chart.value().data);
  EXPECT_EQ(data.at("begin"), 800'000);
  EXPECT_EQ(data.at("length"), 200'000);
  EXPECT_EQ(lanes_of(by_time)[0].at("kinds")[0].at("batch"),
            Json::parse("[80, 2, 2, 2, 2, 2, 2, 2, 2, 2]"));
  EXPECT_EQ(lanes_of(by_time)[2].at("times"), Json::parse("[0, 195000]"));
  EXPECT_EQ(lanes_of(by_time)[2].at("values"), Json::parse("[2, -1]"));

  const cli::Section by_events = cli::timeline_section(picture, {.events = 11});
  EXPECT_THAT(by_events.text, HasSubstr("10 of 100 spans"));

  const cli::Section by_lanes = cli::timeline_section(picture, {.worker_lanes = 1});
  EXPECT_THAT(by_lanes.text, HasSubstr("1 further worker is not drawn."));
  EXPECT_EQ(lanes_of(by_lanes).size(), 2U);
  EXPECT_EQ(lanes_of(by_lanes)[1].at("name"), "ready batches");
}

TEST(Timeline, ShowsTheStretchWithTheLongestStall) {
  cli::TracePicture picture{.groups = {"millrace"}};
  picture.lanes = {lane(0, "worker 0"), lane(0, "trainer"), lane(0, "free slots")};
  for (std::int64_t at = 0; at < 1000; ++at) {
    picture.lanes[0].spans.push_back(span("decode", 10 * at, 10 * at + 10));
    picture.lanes[2].values.push_back({10 * at * millisecond, at});
  }
  picture.lanes[1].spans = {span("stall", 1000, 1001), span("stall", 4000, 4500),
                            span("stall", 9000, 9100), span("ahead", 9100, 9900)};
  const cli::Section by_time = cli::timeline_section(picture, {.nanoseconds = 2000 * millisecond});
  EXPECT_THAT(by_time.text,
              ::testing::StartsWith("A stretch of 2.00 s of 10.00 s, with the longest "
                                    "stall (500 ms at 4.00 s): "));
  const Json data = Json::parse(by_time.chart.value().data);
  EXPECT_EQ(data.at("begin"), 2'900'000) << "most of it before the stall's end";
  EXPECT_EQ(data.at("length"), 2'000'000);
  const Json drawn = lanes_of(by_time);
  EXPECT_EQ(drawn[1].at("kinds")[0].at("spans"), Json::parse("[1100000, 500000]"));
  std::int64_t last = 0;
  for (const Json& step : drawn[2].at("times")) last += step.get<std::int64_t>();
  EXPECT_EQ(last, 2'000'000) << "no counter goes on behind the stretch";

  // The stall is shown even with few events.
  for (const std::size_t events : {20U, 100U, 500U}) {
    const Json few = lanes_of(cli::timeline_section(picture, {.events = events}));
    std::int64_t longest = 0;
    for (const Json& kind : few[1].at("kinds"))
      if (kind.at("name") == "stall") longest = kind.at("spans")[1].get<std::int64_t>();
    EXPECT_GT(longest, 50'000) << events;
  }
}

TEST(Timeline, OfNothingIsNothing) {
  const cli::Section timeline =
      cli::timeline_section({.groups = {"millrace"}, .lanes = {lane(0, "worker 0")}});
  EXPECT_FALSE(timeline.chart.has_value());
  EXPECT_TRUE(timeline.tables.empty());
  EXPECT_EQ(timeline.text, "The trace holds nothing.");
}

}  // namespace
}  // namespace millrace
