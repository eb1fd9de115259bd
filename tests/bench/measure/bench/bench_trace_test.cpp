// SPDX-License-Identifier: Apache-2.0
//
// `bench --trace`.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/pictures.h"
#include "support/run_program.h"
#include "support/waiting.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using Json = nlohmann::json;

class BenchTrace : public OverPictures {
 protected:
  BenchTrace() : OverPictures(pictures(50, 60, 90, 1)) {}

  Json bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {MILLRACE_COMMAND, "bench", dataset_.string()});
    arguments.insert(arguments.end(), {"--json", "-"});
    const RunningProgram::Result result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out);
  }
};

/// A report and sums of its trace.
struct TracedBench {
  Json json{};
  std::map<std::string, double> sum_ms{};
  std::map<std::string, std::size_t> counts{};
  std::set<std::string> lanes{};

  /// The largest difference between the two for a stage. The trace cuts one sample per worker,
  /// which began before the measured time.
  static double tolerance_ms(const Json& stage) {
    return 10 + stage.at("lanes").get<double>() * stage.at("each_ms").at("max").get<double>();
  }
  static double busy_ms(const Json& stage) { return 1e3 * stage.at("busy_seconds").get<double>(); }
  double stall_ms() const { return json.at("stall_ms").at("total").get<double>(); }
  double trace_ms(const std::string& name) const {
    const auto found = sum_ms.find(name);
    return found == sum_ms.end() ? 0 : found->second;
  }
};

TEST_F(BenchTrace, AgreesWithTheReport) {
  const fs::path trace = folder_ / "trace.json";
  const auto run = [&] {
    TracedBench traced{.json = bench({"--batches", "30", "--size", "32", "--batch-size", "10",
                                      "--step-ms", "2", "--trace", trace.string()})};
    const auto seconds = traced.json.at("seconds").get<double>();
    const Json events = Json::parse(std::ifstream(trace)).at("traceEvents");
    for (const Json& event : events) {
      const std::string name = event.at("name");
      ++traced.counts[name];
      // The report does not count spans that end later.
      const double us = event.value("dur", 0.0);
      if (event.value("ts", 0.0) + us <= 1e6 * seconds) traced.sum_ms[name] += us / 1e3;
      if (name == "thread_name")
        traced.lanes.insert(event.at("args").at("name").get<std::string>());
    }
    return traced;
  };
  // On a busy machine a while may pass between the beginnings of the two.
  const TracedBench traced = best_of_three(run, [](const TracedBench& found) {
    return std::abs(found.trace_ms("stall") - found.stall_ms()) <= 0.1 &&
           std::ranges::all_of(found.json.at("stages"), [&](const Json& stage) {
             const std::string name = stage.at("name");
             return name == "trainer" ||
                    std::abs(found.trace_ms(name) - TracedBench::busy_ms(stage)) <
                        TracedBench::tolerance_ms(stage);
           });
  });
  const auto& [json, sums, counts, lanes] = traced;
  for (const char* lane : {"worker 0", "planner", "upload", "copies", "trainer", "device steps"})
    EXPECT_TRUE(lanes.contains(lane)) << lane;
  for (const char* level : {"free slots", "ready batches"})
    EXPECT_TRUE(counts.contains(level)) << level;
  for (const Json& stage : json.at("stages")) {
    const std::string name = stage.at("name");
    if (name == "trainer") continue;
    EXPECT_NEAR(traced.trace_ms(name), TracedBench::busy_ms(stage),
                TracedBench::tolerance_ms(stage))
        << name;
  }
  EXPECT_NEAR(traced.trace_ms("stall"), traced.stall_ms(), 0.1);
  EXPECT_THAT(counts.at("step"), ::testing::AnyOf(30U, 31U)) << "one may be of the warm-up";
}

TEST_F(BenchTrace, HasTheLastStepThoughItsCopyEndsLate) {
  const fs::path trace = folder_ / "late.json";
  // 16 x 32 x 32 x 3 bytes in 50 ms: the trainer has enqueued the last step long before it begins.
  bench({"--batches", "5", "--warmup", "2", "--size", "32", "--batch-size", "16", "--step-ms", "1",
         "--copy-gb-s", "0.001", "--trace", trace.string()});
  const Json events = Json::parse(std::ifstream(trace)).at("traceEvents");
  std::set<std::uint64_t> steps;
  for (const Json& event : events)
    if (event.at("name") == "step") steps.insert(event.at("args").at("batch").get<std::uint64_t>());
  for (std::uint64_t batch = 2; batch < 7; ++batch) EXPECT_TRUE(steps.contains(batch)) << batch;
}

}  // namespace
}  // namespace millrace
