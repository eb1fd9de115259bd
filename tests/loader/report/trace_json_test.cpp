// SPDX-License-Identifier: Apache-2.0
//
// Tests of a trace's file as other programs read it.
#include <gmock/gmock.h>
#include <millrace/trace.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "loader/report/json_of_trace.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Json;
using testing::json_of;
using testing::SmallRun;

std::vector<Json> events_of(const Json& json, const std::string& phases) {
  std::vector<Json> events;
  for (const Json& event : json.at("traceEvents"))
    if (phases.find(event.at("ph").get<std::string>()) != std::string::npos)
      events.push_back(event);
  return events;
}

/// Returns the category of the span that contains a moment of a thread; empty if no span does.
std::string category_at(const Json& json, const Json& moment) {
  for (const Json& span : events_of(json, "X")) {
    const double from_begin = moment.at("ts").get<double>() - span.at("ts").get<double>();
    if (span.at("tid") == moment.at("tid") && from_begin >= -1e-6 &&
        from_begin <= span.at("dur").get<double>() &&
        span.at("args").value("batch", std::uint64_t{1} << 60) ==
            moment.at("args").at("batch").get<std::uint64_t>())
      return span.at("cat");
  }
  return {};
}

/// The names of this process's threads.
std::map<int, std::string> threads() {
  std::map<int, std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    names[std::stoi(task.path().filename())] = name;
  }
  return names;
}

TEST(TraceJson, AFlowFollowsEachBatchFromItsPlanToTheStep) {
  SmallRun run(40, true);
  run.options.debug.trace = std::make_shared<Trace>();
  run.options.slots.micro_batches = 2;
  Pipeline pipeline = run.pipeline();
  Trace& trace = *run.options.debug.trace;
  Trace::Lane& steps = trace.add_lane(trace.group("millrace"), "steps", "step");
  while (Batch batch = pipeline.next()) {
    const auto now = Trace::Clock::now();
    steps.add("step", now, now + 1us, batch.number());
  }
  const auto copied = [&] {
    const std::vector<StageReport> stages = pipeline.report().stages;
    return std::ranges::count_if(stages, [](const StageReport& stage) {
             return (stage.name == "copy" || stage.name == "convert") && stage.each.count == 10;
           }) == 2;
  };
  ASSERT_TRUE(testing::eventually(copied));
  const Json json = json_of(trace);
  std::map<int, std::vector<Json>> flows;
  for (const Json& event : events_of(json, "stf"))
    flows[event.at("id").get<int>()].push_back(event);
  EXPECT_EQ(flows.size(), 5U);
  for (const auto& [id, flow] : flows) {
    std::multiset<std::string> met;
    for (const Json& moment : flow) met.insert(category_at(json, moment));
    EXPECT_THAT(met, ::testing::UnorderedElementsAre("plan", "make", "upload", "copy", "convert",
                                                     "hand out", "step"));
    EXPECT_EQ(flow.front().at("ph"), "s");
    EXPECT_EQ(flow.back().at("ph"), "f");
    EXPECT_TRUE(std::ranges::is_sorted(
        flow, {}, [](const Json& moment) { return moment.at("ts").get<double>(); }));
  }
}

TEST(TraceJson, ProcessAndThreadsAreTheOperatingSystems) {
  SmallRun run(80);
  run.options.debug.trace = std::make_shared<Trace>();
  run.workers(2);
  Pipeline pipeline = run.pipeline();
  while (pipeline.next()) continue;
  const std::map<int, std::string> running = threads();
  std::set<std::string> categories;
  for (const Json& span : events_of(json_of(*run.options.debug.trace), "X")) {
    EXPECT_EQ(span.at("pid"), getpid());
    const std::string category = span.at("cat");
    categories.insert(category);
    if (category == "hand out") {
      EXPECT_EQ(span.at("tid"), gettid());
      continue;
    }
    ASSERT_TRUE(running.contains(span.at("tid").get<int>())) << category;
    EXPECT_THAT(running.at(span.at("tid").get<int>()),
                ::testing::StartsWith(category == "make"   ? "millrace-w"
                                      : category == "plan" ? "millrace-plan"
                                                           : "millrace-upload"));
  }
  EXPECT_THAT(categories, ::testing::IsSupersetOf({"hand out", "make", "plan"}));
}

TEST(TraceJson, NamedPipelinesAreToldApart) {
  const auto trace = std::make_shared<Trace>();
  const auto runtime = make_runtime({.workers = 1});
  std::vector<Pipeline> pipelines;
  for (const char* name : {"train", "evaluation"}) {
    SmallRun run(40);
    run.options.name = name;
    run.options.runtime = runtime;
    run.options.debug.trace = trace;
    pipelines.push_back(run.pipeline());
    while (pipelines.back().next()) continue;
    EXPECT_EQ(pipelines.back().report().pipeline, name);
  }
  // A thread sets its name when it first runs, which may be after the last batch.
  std::set<std::string> running;
  const std::set<std::string> named = {"evaluati-upload", "train-ahead", "train-plan",
                                       "train-upload"};
  EXPECT_TRUE(testing::eventually([&] {
    running.clear();
    for (const auto& [number, name] : threads()) running.insert(name);
    return std::ranges::includes(running, named);
  })) << ::testing::PrintToString(running);
  std::multiset<std::string> names;
  for (const Json& event : events_of(json_of(*trace), "M"))
    if (event.at("name") != "thread_sort_index")
      names.insert(event.at("args").at("name").get<std::string>());
  EXPECT_THAT(names, ::testing::IsSupersetOf({"train, evaluation", "train: planner",
                                              "evaluation: planner", "worker 0"}));
  EXPECT_EQ(names.count("worker 0"), 1U) << "the worker that they share is one thread";
}

TEST(TraceJson, SaysWhereItsTimesBeginOnOtherClocks) {
  Trace trace;
  trace.clear();
  const auto steady = Trace::Clock::now().time_since_epoch();
  const auto unix = std::chrono::system_clock::now().time_since_epoch();
  const Json other = json_of(trace).at("otherData");
  const auto begin = [&](const char* key) {
    return std::chrono::nanoseconds(std::stoll(other.at(key).get<std::string>()));
  };
  EXPECT_LT(abs(steady - begin("begin_monotonic_ns")), 5s);
  EXPECT_LT(abs(unix - begin("begin_unix_ns")), 5s);
}

TEST(TraceJson, ATraceOfTheNewestGivesUpItsOldest) {
  Trace trace({.max_events = 10, .keep_newest = true});
  Trace::Lane& lane = trace.add_lane(trace.add_group("group"), "lane");
  Trace::Lane& late = trace.add_lane(0, "late");
  Trace::Lane& counter = trace.add_lane(0, "counter");
  const auto now = Trace::Clock::now();
  counter.set(now, 1);
  for (std::uint64_t span = 0; span < 24; ++span) lane.add("span", now, now, span);
  late.add("span", now, now);
  counter.set(now, 2);
  const std::vector<TraceLane> lanes = trace.lanes();
  ASSERT_EQ(lanes[0].spans.size(), 8U);
  EXPECT_EQ(lanes[0].spans.front().batch, 16U);
  EXPECT_EQ(lanes[0].spans.back().batch, 23U);
  EXPECT_EQ(lanes[1].spans.size(), 1U) << "a lane that had none yet gets its first";
  ASSERT_EQ(lanes[2].values.size(), 1U);
  EXPECT_EQ(lanes[2].values[0].value, 2);
  EXPECT_EQ(trace.dropped(), 17U);
}

}  // namespace
}  // namespace millrace
