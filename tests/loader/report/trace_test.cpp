// SPDX-License-Identifier: Apache-2.0
#include <millrace/trace.h>

#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "loader/report/json_of_trace.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Json;
using testing::json_of;
using testing::SmallRun;

/// Checks the rules of the Trace Event Format that a writer of such events can break.
void expect_well_formed(const Json& json) {
  ASSERT_TRUE(json.is_object());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
  std::set<std::pair<int, int>> named;
  for (const Json& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ASSERT_TRUE(event.at("name").is_string());
    ASSERT_TRUE(event.at("pid").is_number_integer());
    if (phase == "M") {
      if (event["name"].get<std::string>() == "thread_name")
        named.emplace(event["pid"].get<int>(), event.at("tid").get<int>());
      continue;
    }
    ASSERT_GE(event.at("ts").get<double>(), 0);
    if (phase == "C") {
      ASSERT_FALSE(event.at("args").empty());
      for (const auto& [name, value] : event["args"].items())
        ASSERT_TRUE(value.is_number()) << name;
      continue;
    }
    if (phase == "s" || phase == "t" || phase == "f") {
      ASSERT_TRUE(event.at("id").is_number_integer());
      ASSERT_TRUE(event.at("tid").is_number_integer());
      continue;
    }
    ASSERT_EQ(phase, "X");
    ASSERT_GE(event.at("dur").get<double>(), 0);
    spans[{event["pid"].get<int>(), event.at("tid").get<int>()}].emplace_back(
        event["ts"].get<double>(), event["dur"].get<double>());
  }
  for (auto& [lane, of_lane] : spans) {
    EXPECT_TRUE(named.contains(lane)) << "lane " << lane.second << " has a name";
    std::sort(of_lane.begin(), of_lane.end());
    for (std::size_t span = 1; span < of_lane.size(); ++span)
      EXPECT_LE(of_lane[span - 1].first + of_lane[span - 1].second, of_lane[span].first + 1e-3)
          << "spans of lane " << lane.second << " overlap";
  }
}

/// Total milliseconds and number of all spans with a name.
std::pair<double, std::size_t> sum_of(const Trace& trace, const std::string& name) {
  double sum = 0;
  std::size_t count = 0;
  for (const TraceLane& lane : trace.lanes())
    for (const TraceSpan& span : lane.spans)
      if (span.name == name) {
        sum += static_cast<double>(span.end_ns - span.begin_ns) / 1e6;
        ++count;
      }
  return {sum, count};
}

const TraceLane& lane_of(const std::vector<TraceLane>& lanes, const std::string& name) {
  const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                 [&](const TraceLane& one) { return one.name == name; });
  if (lane == lanes.end()) throw std::out_of_range(name);
  return *lane;
}

TEST(Trace, AgreesWithTheReport) {
  for (const bool copies : {false, true}) {
    SmallRun run = testing::uneven_run(400, copies);
    run.options.debug.trace = std::make_shared<Trace>();
    run.options.slots.micro_batches = 2;
    run.workers(2);
    Pipeline pipeline = run.pipeline();
    while (Batch batch = pipeline.next()) std::this_thread::sleep_for(500us);
    const auto all_there = [&] {
      const Report report = pipeline.report();
      return !copies || (report.stages.size() == 6 && report.stages[3].each.count == 100 &&
                         report.stages[4].each.count == 100);
    };
    ASSERT_TRUE(testing::eventually(all_there));
    const Report report = pipeline.report();
    const Trace& trace = *run.options.debug.trace;
    expect_well_formed(json_of(trace));
    EXPECT_EQ(trace.dropped(), 0U);

    for (const StageReport& stage : report.stages) {
      if (stage.name == "trainer") continue;
      const auto [sum, count] = sum_of(trace, stage.name);
      EXPECT_NEAR(sum, 1e3 * stage.busy_seconds, 1e-3) << stage.name;
      EXPECT_EQ(count, stage.each.count) << stage.name;
    }
    EXPECT_NEAR(sum_of(trace, "stall").first, report.stall.total_ms,
                0.02 * report.stall.total_ms + 0.1);
    EXPECT_NEAR(sum_of(trace, "ahead").first, report.ahead.total_ms,
                0.02 * report.ahead.total_ms + 0.1);
    EXPECT_EQ(sum_of(trace, "plan").second, 50U);
    EXPECT_EQ(sum_of(trace, "upload").second, 100U);
  }
}

TEST(Trace, HasALanePerWorkerThreadAndCounter) {
  SmallRun run(80, true);
  run.options.debug.trace = std::make_shared<Trace>();
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  const std::vector<TraceLane> lanes = run.options.debug.trace->lanes();
  EXPECT_FALSE(lane_of(lanes, "worker 0").spans.empty() &&
               lane_of(lanes, "worker 1").spans.empty());
  for (const char* name : {"planner", "upload"})
    EXPECT_FALSE(lane_of(lanes, name).spans.empty()) << name;
  for (const char* name : {"free slots", "ready batches", "active workers"})
    EXPECT_FALSE(lane_of(lanes, name).values.empty()) << name;
  for (const TraceSpan& span : lane_of(lanes, "worker 0").spans) {
    EXPECT_LT(span.record, 80U);
    EXPECT_LT(span.batch, 10U);
  }
  for (const TraceValue& value : lane_of(lanes, "free slots").values) {
    EXPECT_GE(value.value, 0);
    EXPECT_LE(value.value, 4);
  }
}

TEST(Trace, SpansNameTheirBatchAndRecord) {
  SmallRun run(16);
  run.options.debug.trace = std::make_shared<Trace>();
  run.options.order = Order::sequential();
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  std::map<std::uint64_t, std::uint64_t> batch_of;
  for (const TraceLane& lane : run.options.debug.trace->lanes())
    for (const TraceSpan& span : lane.spans)
      if (std::string(span.name) == "stamp") batch_of[span.record] = span.batch;
  ASSERT_EQ(batch_of.size(), 16U);
  for (const auto& [record, batch] : batch_of) EXPECT_EQ(batch, record / 8);
}

TEST(Trace, LivesAsLongAsAPipelineThatWritesIt) {
  testing::SmallRun run(64);
  run.options.debug.trace = std::make_shared<Trace>();
  const std::weak_ptr<Trace> trace = run.options.debug.trace;
  std::optional<Pipeline> pipeline(run.pipeline());
  run.options.debug.trace.reset();
  std::size_t batches = 0;
  for (Batch batch = pipeline->next(); batch; batch = pipeline->next()) ++batches;
  EXPECT_EQ(batches, 8U);
  ASSERT_FALSE(trace.expired());
  std::ostringstream json;
  trace.lock()->write_json(json);
  EXPECT_THAT(json.str(), ::testing::HasSubstr("planner"));
  pipeline.reset();
  EXPECT_TRUE(trace.expired());
}

TEST(Trace, ClearBeginsAnew) {
  Trace trace;
  const std::size_t group = trace.add_group("group");
  Trace::Lane& lane = trace.add_lane(group, "lane");
  Trace::Lane& counter = trace.add_lane(group, "counter");
  const auto before = Trace::Clock::now();
  lane.add("old", before, before + 1ms);
  counter.set(before, 5);
  std::this_thread::sleep_for(2ms);
  trace.clear();
  const auto after = Trace::Clock::now();
  lane.add("across", before, after);
  lane.add("new", after, after + 3ms, 4, 9);
  const std::vector<TraceLane> lanes = trace.lanes();
  ASSERT_EQ(lanes[0].spans.size(), 2U);
  EXPECT_STREQ(lanes[0].spans[0].name, "across");
  EXPECT_EQ(lanes[0].spans[0].begin_ns, 0) << "what began before is cut";
  EXPECT_EQ(lanes[0].spans[1].end_ns - lanes[0].spans[1].begin_ns, 3'000'000);
  EXPECT_EQ(lanes[0].spans[1].batch, 4U);
  EXPECT_EQ(lanes[0].spans[1].record, 9U);
  ASSERT_EQ(lanes[1].values.size(), 1U);
  EXPECT_EQ(lanes[1].values[0].value, 5) << "a counter keeps its value";
}

TEST(Trace, KeepsNothingThatBeginsAfterItsEnd) {
  Trace trace;
  const std::size_t group = trace.add_group("group");
  Trace::Lane& lane = trace.add_lane(group, "lane");
  Trace::Lane& counter = trace.add_lane(group, "counter");
  const auto before = Trace::Clock::now();
  trace.finish();
  const auto after = Trace::Clock::now();
  lane.add("across", before, after + 1ms);
  lane.add("late", after, after + 1ms);
  counter.set(after, 1);
  ASSERT_EQ(trace.lanes()[0].spans.size(), 1U);
  EXPECT_STREQ(trace.lanes()[0].spans[0].name, "across");
  EXPECT_TRUE(trace.lanes()[1].values.empty());
  EXPECT_EQ(trace.dropped(), 0U);
  trace.clear();
  lane.add("new", Trace::Clock::now(), Trace::Clock::now());
  EXPECT_EQ(trace.lanes()[0].spans.size(), 1U);
}

TEST(Trace, CountsWhatItDoesNotKeep) {
  Trace trace({.max_events = 10});
  Trace::Lane& lane = trace.add_lane(trace.add_group("group"), "lane");
  const auto now = Trace::Clock::now();
  for (int span = 0; span < 25; ++span) lane.add("span", now, now);
  EXPECT_EQ(trace.lanes()[0].spans.size(), 10U);
  EXPECT_EQ(trace.dropped(), 15U);
  EXPECT_EQ(json_of(trace).at("otherData").at("dropped_events"), "15");
}

std::size_t events_in(const Trace& trace) {
  std::size_t events = 0;
  for (const TraceLane& lane : trace.lanes()) events += lane.spans.size() + lane.values.size();
  return events;
}

TEST(Trace, KeepsTheNewestOfAllLanes) {
  Trace trace({.max_events = 4, .keep_newest = true});
  const std::size_t group = trace.add_group("group");
  const auto now = Trace::Clock::now();
  Trace::Lane& lane = trace.add_lane(group, "lane");
  trace.add_lane(group, "counter").set(now, 3);
  for (std::uint64_t span = 0; span < 6; ++span) lane.add("span", now + 1h, now + 2h, span);
  trace.add_lane(group, "late").add("span", now + 6h, now + 6h);
  const std::vector<TraceLane> lanes = trace.lanes();
  ASSERT_EQ(lanes[0].spans.size(), 2U);
  EXPECT_EQ(lanes[0].spans[0].batch, 4U);
  EXPECT_EQ(lanes[1].values.size(), 1U) << "a counter keeps its value while others have several";
  EXPECT_EQ(lanes[2].spans.size(), 1U);
  EXPECT_EQ(trace.dropped(), 4U);
  for (int more = 0; more < 9; ++more)
    trace.add_lane(group, "more").add("more", now + 8h + more * 1h, now + 20h);
  EXPECT_EQ(events_in(trace), 4U);
  EXPECT_EQ(sum_of(trace, "more").second, 4U);
  EXPECT_EQ(trace.dropped(), 13U);
}

TEST(Trace, CountsTheValuesThatClearKeeps) {
  for (const bool keep_newest : {false, true}) {
    Trace trace({.max_events = 4, .keep_newest = keep_newest});
    const std::size_t group = trace.add_group("group");
    const auto now = Trace::Clock::now();
    Trace::Lane& lane = trace.add_lane(group, "lane");
    for (int counter = 0; counter < 3; ++counter) trace.add_lane(group, "counter").set(now, 3);
    for (int round = 0; round < 3; ++round) {
      for (int span = 0; span < 5; ++span) lane.add("span", now + 1h, now + 2h);
      EXPECT_EQ(events_in(trace), 4U);
      EXPECT_EQ(trace.dropped(), 4U);
      trace.clear();
      EXPECT_EQ(events_in(trace), 3U);
    }
  }
}

TEST(Trace, KeepsNoneOfTheNewestWithoutRoom) {
  Trace trace({.max_events = 0, .keep_newest = true});
  const auto now = Trace::Clock::now();
  trace.add_lane(trace.add_group("group"), "lane").add("span", now, now);
  EXPECT_EQ(events_in(trace), 0U);
  EXPECT_EQ(trace.dropped(), 1U);
}

TEST(Trace, KeepsNoMoreOfTheNewestIfManyThreadsAddAtOnce) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t most = 3;
  Trace trace({.max_events = most, .keep_newest = true});
  const std::size_t group = trace.add_group("group");
  const auto now = Trace::Clock::now();
  std::atomic<std::size_t> arrived{0};
  {
    std::vector<std::jthread> running;
    for (std::size_t thread = 0; thread < threads; ++thread)
      running.emplace_back([&] {
        Trace::Lane& lane = trace.add_lane(group, "lane");
        ++arrived;
        while (arrived < threads) std::this_thread::yield();
        for (int span = 0; span < 300; ++span) lane.add("span", now, now);
      });
  }
  EXPECT_LE(events_in(trace), most);
  EXPECT_GT(events_in(trace), 0U);
}

TEST(Trace, KeepsNoMoreIfManyThreadsAddAtOnce) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t most = 4;
  // Many traces, since threads rarely take the last room at the same moment.
  for (int repetition = 0; repetition < 10; ++repetition) {
    std::vector<std::unique_ptr<Trace>> traces(500);
    for (auto& trace : traces) {
      trace = std::make_unique<Trace>(TraceOptions{.max_events = most});
      trace->add_group("group");
    }
    std::atomic<std::size_t> arrived{0};
    const auto add = [&] {
      const auto now = Trace::Clock::now();
      for (std::size_t number = 0; number < traces.size(); ++number) {
        Trace::Lane& lane = traces[number]->add_lane(0, "lane");
        ++arrived;
        while (arrived < threads * (number + 1)) std::this_thread::yield();
        for (std::size_t span = 0; span < most; ++span) lane.add("span", now, now + 1h);
      }
    };
    {
      std::vector<std::jthread> running;
      for (std::size_t thread = 0; thread < threads; ++thread) running.emplace_back(add);
    }
    for (const auto& trace : traces) {
      ASSERT_EQ(sum_of(*trace, "span").second, most);
      ASSERT_EQ(trace->dropped(), (threads - 1) * most);
    }
  }
}

TEST(Trace, TimesAreMicrosecondsToTheNanosecond) {
  Trace trace;
  Trace::Lane& lane = trace.add_lane(trace.add_group("group"), "lane");
  trace.clear();
  const auto now = Trace::Clock::now() + std::chrono::hours(100);
  lane.add("long", now, now + 1'234'567'891ns);
  lane.add("short", now, now + 5ns);
  std::ostringstream out;
  trace.write_json(out);
  EXPECT_NE(out.str().find(R"("dur":1234567.891,)"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find(R"("dur":0.005,)"), std::string::npos) << out.str();
}

TEST(Trace, NamesAreEscaped) {
  Trace trace;
  const std::string name = "a \"quoted\"\nname \xff";
  Trace::Lane& lane = trace.add_lane(trace.add_group(name), name);
  const auto now = Trace::Clock::now();
  lane.add(trace.keep(name), now, now + 1us);
  expect_well_formed(json_of(trace));
}

TEST(Trace, RefusesAGroupThatIsNotThere) {
  Trace trace;
  EXPECT_EQ(testing::error_of([&] { trace.add_lane(0, "lane"); }).code(),
            ErrorCode::invalid_argument);
}

TEST(Trace, AFileThatCannotBeWrittenIsNamed) {
  const Error error =
      testing::error_of([] { Trace().write_json(std::filesystem::path("/nowhere/trace.json")); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_NE(std::string(error.what()).find("/nowhere/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace millrace
