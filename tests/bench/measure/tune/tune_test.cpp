// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/options_file.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pictures.h"
#include "support/run_program.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

/// A few small pictures, and the command with a budget of a fraction of a second, which makes every
/// choice doubtful.
class Tune : public OverPictures {
 protected:
  Tune() : OverPictures(pictures(24, 24, 16)) {}

  Result tune(std::vector<std::string> arguments) const {
    arguments.emplace_back("--accept-noise");
    return tune_strictly(arguments);
  }

  Result tune_strictly(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {MILLRACE_COMMAND, "tune", dataset_.string(), "--size", "16"});
    if (std::find(arguments.begin(), arguments.end(), "--budget-s") == arguments.end())
      arguments.insert(arguments.end(), {"--budget-s", "0.6"});
    return run_program(arguments);
  }

  Result bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {MILLRACE_COMMAND, "bench", dataset_.string(), "--size",
                                         "16", "--batches", "3"});
    return run_program(arguments);
  }

  Json bench_options(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Result result = bench(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("options");
  }

  static std::string text_of(const fs::path& path) {
    return {std::istreambuf_iterator<char>(std::ifstream(path).rdbuf()), {}};
  }

  void write_config(const std::string& text) const { std::ofstream(config_) << text; }

  const fs::path config_ = folder_ / "options.json";
};

TEST_F(Tune, PrintsTablesAPlotAndTheVerdictLast) {
  const Result result = tune({"--batch-size", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* what :
       {"24 records", "batches of 4", "workers (with", "prefetch (with", "micro_batches (with",
        "samples/s", "p99 ms", "X(N) =", "# measured", "±"})
    EXPECT_THAT(result.out, HasSubstr(what));
  EXPECT_THAT(result.out, Not(HasSubstr("batch_size (with")));
  const std::string last_line =
      result.out.substr(result.out.rfind('\n', result.out.size() - 2) + 1);
  EXPECT_THAT(last_line, HasSubstr("the knee of throughput"));
}

TEST_F(Tune, WritesOptionsThatTheLibraryAndTheBenchRead) {
  const Result result = tune({"--batch-size", "4", "--step-ms", "20", "--out", config_.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const LoadedOptions loaded = load_options(config_);
  EXPECT_GE(loaded.workers, 1u);
  EXPECT_LE(loaded.workers, read_topology().usable_cpus);
  EXPECT_EQ(loaded.pipeline.batch_size, 4u);
  EXPECT_THAT(loaded.machine_differences, IsEmpty());
  EXPECT_THAT(loaded.why, HasSubstr("the step of 20 ms"));
  EXPECT_EQ(loaded.tuned_for.dataset, dataset_.string());
  EXPECT_EQ(loaded.tuned_for.records, 24u);
  EXPECT_EQ(loaded.tuned_for.step_ms, 20);
  EXPECT_EQ(Json::parse(loaded.tuned_for.recipe).at("output"), Json({16, 16}));

  const Json options = bench_options({"--config", config_.string()});
  EXPECT_EQ(options.at("workers"), loaded.workers);
  EXPECT_EQ(options.at("prefetch"), loaded.pipeline.slots.prefetch);
  EXPECT_EQ(options.at("micro_batches"), loaded.pipeline.slots.micro_batches);
  EXPECT_EQ(options.at("batch_size"), 4);
  EXPECT_EQ(bench({"--config", config_.string()}).err, "");
}

// No machine can make 4 images in a microsecond.
TEST_F(Tune, WhereNothingFeedsTheStepItSaysSoEverywhereAndEndsWithThree) {
  const fs::path page = folder_ / "page.html";
  const fs::path json = folder_ / "result.json";
  const std::vector<std::string> arguments = {
      "--batch-size",   "4",      "--step-ms",   "0.001",  "--out",
      config_.string(), "--html", page.string(), "--json", json.string()};
  const Result result = tune_strictly(arguments);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const char* said = "Nothing feeds the step surely";
  EXPECT_THAT(result.out, HasSubstr(std::string("warning: ") + said));
  EXPECT_THAT(text_of(page), HasSubstr(said));
  EXPECT_THAT(load_options(config_).why, HasSubstr(said));
  const Json written = Json::parse(text_of(json));
  EXPECT_EQ(written.at("doubtful"), true);
  EXPECT_THAT(written.at("warnings").at(0).get<std::string>(), HasSubstr(said));

  EXPECT_EQ(tune(arguments).exit_code, 0);
}

TEST_F(Tune, JsonHasEveryRun) {
  const Result result =
      tune({"--batch-size", "4", "--step-ms", "1", "--max-workers", "3", "--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("goal").at("max_workers"), 3);
  EXPECT_EQ(json.at("goal").at("step_ms"), 1);
  EXPECT_EQ(json.at("phases").at(0).at("variable"), "workers");
  const Json& chosen = json.at("points").at(json.at("chosen_point").get<std::size_t>());
  EXPECT_EQ(chosen.at("setting"), json.at("chosen"));
  for (const Json& point : json.at("points")) {
    EXPECT_EQ(point.at("runs").size(), point.at("runs_counted").get<std::size_t>() +
                                           point.at("runs_set_aside").get<std::size_t>());
    for (const Json& run : point.at("runs")) {
      EXPECT_GT(run.at("samples_per_second").get<double>(), 0);
      EXPECT_GE(run.at("device_idle").get<double>(), 0);
      EXPECT_GE(run.at("seconds").get<double>(), 0);
    }
    EXPECT_LE(point.at("batch_ms").at("p50").get<double>(),
              point.at("batch_ms").at("p99").get<double>());
  }
  EXPECT_THAT(json.at("why").get<std::string>(), HasSubstr(json.at("verdict").get<std::string>()));
  for (const char* key : {"lambda", "sigma", "kappa", "knee", "r_squared"})
    EXPECT_TRUE(json.at("fit").contains(key)) << key;
  for (const char* key : {"cpu", "cores", "numa_nodes", "memory_bytes", "commit"})
    EXPECT_TRUE(json.at("machine").contains(key)) << key;
}

TEST_F(Tune, SearchesTheShareOfTheDevice) {
  const std::vector<std::string> on_device = {"--decode", "device", "--convert", "uint8:nhwc"};
  std::vector<std::string> arguments = {"--batch-size", "4", "--budget-s", "1",
                                        "--json",       "-", "--out",      config_.string()};
  arguments.insert(arguments.end(), on_device.begin(), on_device.end());
  const Result result = tune(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("phases").at(1).at("variable"), "device_share");
  const double share = json.at("chosen").at("device_share").get<double>();
  EXPECT_EQ(json.at("recipe_program").value("device_share", 1.0), share);
  EXPECT_EQ(Json::parse(load_options(config_).tuned_for.recipe).value("device_share", 1.0), share);
  std::vector<std::string> with_file = {"--config", config_.string()};
  with_file.insert(with_file.end(), on_device.begin(), on_device.end());
  EXPECT_EQ(bench(with_file).err, "");

  arguments.insert(arguments.end(), {"--decode-share", "0.5"});
  const Result given = tune(arguments);
  EXPECT_EQ(given.exit_code, 0) << given.err;
  EXPECT_FALSE(Json::parse(given.out).at("chosen").contains("device_share"));
  EXPECT_EQ(Json::parse(given.out).at("recipe_program").at("device_share"), 0.5);
}

TEST_F(Tune, TheBenchTakesTheShareOfTheFile) {
  const auto share_of = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--config", config_.string(), "--decode", "device", "--convert",
                             "uint8:nhwc", "--json", "-"});
    const Result result = bench(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("options").at("recipe_program").value("device_share", 1.0);
  };
  write_config(R"({"format": 1, "options": {},
                   "tuned_for": {"recipe": {"decode_on": "device", "device_share": 0.25}}})");
  EXPECT_EQ(share_of({}), 0.25);
  EXPECT_EQ(share_of({"--decode-share", "0.75"}), 0.75);
  write_config(R"({"format": 1, "options": {}, "tuned_for": {"recipe": {"device_share": 2}}})");
  const Result wrong =
      bench({"--config", config_.string(), "--decode", "device", "--convert", "uint8:nhwc"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr(config_.string() +
                                   ": tuned_for.recipe: \"device_share\" is 2.0, must lie in"));
}

TEST_F(Tune, SearchesTheBatchSizeWithinLimits) {
  const Result result = tune({"--batch-size", "4", "--memory", "64K", "--p99-ms", "1000", "--json",
                              "-", "--budget-s", "1.5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("goal").at("memory_bytes"), 65536);
  EXPECT_EQ(json.at("phases").size(), 4u);
  EXPECT_EQ(json.at("phases").at(3).at("variable"), "batch_size");
}

TEST_F(Tune, SaysWhatTheBudgetDidNotAllow) {
  const Result result = tune({"--batch-size", "24", "--step-ms", "50", "--budget-s", "0.1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("not measured: workers"));
  EXPECT_THAT(result.out, HasSubstr("--budget-s"));
}

TEST_F(Tune, TheBenchSaysWhereTheMachineDiffers) {
  write_config(
      R"({"format": 1,
          "options": {"workers": 1, "batch_size": 6, "prefetch": 5, "micro_batches": 2},
          "machine": {"cpu": "Abacus 3000"}})");
  const Result result = bench({"--config", config_.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(config_.string()));
  EXPECT_THAT(result.err, HasSubstr("the processor was Abacus 3000"));
  EXPECT_THAT(result.err, Not(HasSubstr("cores")));
  EXPECT_THAT(result.out, HasSubstr("1 workers, batches of 6 in 2 micro-batches, prefetch 5"));
}

TEST_F(Tune, TheBenchSaysWhereTheRecipeDiffers) {
  write_config(R"({"format": 1, "options": {}, "tuned_for": {"recipe": {"output": [224, 224]}}})");
  EXPECT_THAT(bench({"--config", config_.string()}).err, HasSubstr("another recipe"));
}

TEST_F(Tune, TheCommandLineWinsOverTheFile) {
  write_config(
      R"({"format": 1,
          "options": {"workers": 1, "batch_size": 6, "prefetch": 5, "micro_batches": 2}})");
  const Json options = bench_options({"--config", config_.string(), "--batch-size", "8",
                                      "--workers", "2", "--micro-batches", "4"});
  EXPECT_EQ(options.at("batch_size"), 8);
  EXPECT_EQ(options.at("workers"), 2);
  EXPECT_EQ(options.at("micro_batches"), 4);
  EXPECT_EQ(options.at("prefetch"), 5);
}

TEST_F(Tune, ABrokenFileIsNamed) {
  write_config(R"({"format": 1, "options": {"prefetch": 0}})");
  const Result result = bench({"--config", config_.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(config_.string() + ": \"options.prefetch\" is 0"));
}

TEST_F(Tune, UsageErrorsEndWithTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--batch-size", "0"},   {"--batch-size", "many"}, {"--step-ms", "-1"},
      {"--memory", "512Q"},    {"--memory", "0"},        {"--memory", "-1M"},
      {"--max-workers", "-2"}, {"--budget-s", "0"},      {"--p99-ms", "0"},
      {"--workers", "2"}};
  for (const auto& arguments : wrong) {
    const Result result = tune(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << ' ' << arguments[1] << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("millrace: "));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Tune, ErrorsNameWhatIsWrong) {
  // The check comes before any measurement: this budget is a day.
  const Result no_place =
      tune({"--out", (folder_ / "nowhere" / "options.json").string(), "--budget-s", "86400"});
  EXPECT_EQ(no_place.exit_code, 1);
  EXPECT_THAT(no_place.err, HasSubstr("nowhere/options.json"));

  const Result missing =
      run_program({MILLRACE_COMMAND, "tune", (folder_ / "missing.lmdb").string()});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("missing.lmdb"));
}

TEST_F(Tune, HelpSaysWhatFeedingMeansAndHasExamples) {
  const Result result = run_program({MILLRACE_COMMAND, "tune", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("idle"));
  EXPECT_THAT(result.out, HasSubstr("95% confidence"));
  EXPECT_THAT(result.out, HasSubstr("Examples:"));
}

}  // namespace
}  // namespace millrace
