// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/diagnose/page_cache.h"
#include "support/pictures.h"
#include "support/run_program.h"
#include "support/waiting.h"
#include "support/well_formed.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

class Diagnose : public OverPictures {
 protected:
  static constexpr std::uint64_t records = 40;

  Diagnose() : OverPictures(pictures(records, 60, 90, 1)) {}

  static Result diagnose_of(const fs::path& dataset, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {MILLRACE_COMMAND, "diagnose", dataset.string()});
    return run_program(arguments);
  }
  Result diagnose(std::vector<std::string> arguments) const {
    return diagnose_of(dataset_, std::move(arguments));
  }

  /// A short diagnosis.
  static std::vector<std::string> brief(std::vector<std::string> more) {
    more.insert(more.end(),
                {"--step-ms", "1", "--rounds", "2", "--batch-size", "8", "--size", "32"});
    return more;
  }

  Json diagnose_json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Result result = diagnose(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out);
  }

  bool cold_is_possible() const { return !cli::lies_in_memory(folder_.path()); }
};

TEST_F(Diagnose, PrintsATableAndEndsWithVerdictAndAdvice) {
  const Result result = diagnose(brief({"--batches", "4"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* name :
       {"40 records", "ms per batch", "of an epoch", "s per epoch", "compute (step alone)",
        "trainer's thread", "copy stall", "preparation stall", "fetch stall", "an epoch",
        "step alone", "batch on the device", "copies, nothing made", "loader, warm cache",
        "device idle"})
    EXPECT_THAT(result.out, HasSubstr(name));
  EXPECT_THAT(result.out,
              ::testing::ContainsRegex("\n\n(the device waits|the step bounds)[^\n]*\n[^\n]+\n$"));
}

TEST_F(Diagnose, WritesTheSameAsJson) {
  const Json json =
      diagnose_json(brief({"--batches", "5", "--workers", "2", "--prefetch", "3", "--seed", "9"}));
  double percent = 0;
  double ms = 0;
  for (const auto& [name, part] : json.at("parts").items()) {
    if (part.is_null()) continue;
    percent += part.at("percent").get<double>();
    ms += part.at("ms_per_batch").get<double>();
  }
  EXPECT_NEAR(percent, 100, 1e-6);
  EXPECT_NEAR(ms, json.at("epoch").at("ms_per_batch").get<double>(), 1e-6);
  EXPECT_NEAR(json.at("epoch").at("seconds").get<double>(), ms * 5 / 1e3,
              1e-6);  // 40 records in batches of 8
  EXPECT_GE(json.at("parts").at("compute").at("ms_per_batch").get<double>(), 0.9);
  for (const char* phase : {"step", "ready_batch", "copies", "loader"})
    EXPECT_EQ(json.at("rounds_ms_per_batch").at(phase).size(), 2u) << phase;
  EXPECT_EQ(json.at("options").at("workers"), 2);
  EXPECT_EQ(json.at("options").at("prefetch"), 3);
  EXPECT_EQ(json.at("options").at("seed"), 9);
  EXPECT_EQ(json.at("options").at("step_ms"), 1);
  EXPECT_EQ(json.at("pass_batches"), 5);
  EXPECT_EQ(json.at("sampled_records"), 40);
  for (const char* key : {"stage", "percent", "speedup_limit", "next_bound", "text", "advice"})
    EXPECT_TRUE(json.at("verdict").contains(key)) << key;
  EXPECT_TRUE(json.at("machine").contains("cpu"));
}

TEST_F(Diagnose, WritesAPage) {
  const fs::path file = folder_ / "result.html";
  // More workers than any machine has processors, which gives a warning.
  const Result result =
      diagnose(brief({"--batches", "3", "--workers", "600", "--html", file.string()}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("warning: oversubscribed: 600 workers on"));
  std::ifstream stream(file);
  const std::string html{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(fault_in_markup(html), "");
  EXPECT_THAT(html, ::testing::ContainsRegex("<h1>(The device waits|The step bounds)"));
  for (const std::string& text :
       {dataset_.string(), std::string("<li>oversubscribed: 600 workers on"),
        std::string("data-kind=\"shares\""), std::string("compute (step alone)"),
        std::string("loader, warm cache"), std::string("<th scope=\"row\">Batch size</th>")})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST_F(Diagnose, MeasuresAColdCache) {
  if (!cold_is_possible()) GTEST_SKIP() << "the folder for temporary files lies in memory";
  const Json json = diagnose_json(brief({"--batches", "12"}));
  EXPECT_TRUE(json.at("cold_cache").at("measured").get<bool>());
  EXPECT_TRUE(json.at("cold_cache").at("missing").is_null());
  EXPECT_LE(json.at("cold_cache").at("kept_percent").get<double>(), 2);
  EXPECT_EQ(json.at("rounds_ms_per_batch").at("cold_pass").size(), 2u);
  EXPECT_EQ(json.at("rounds_ms_per_batch").at("warm_pass").size(), 2u);
  EXPECT_TRUE(json.at("parts").at("fetch").contains("ms_per_batch"));
  // An epoch has 5 batches. A longer pass would read cached records.
  EXPECT_EQ(json.at("pass_batches"), 5);
  EXPECT_EQ(json.at("passes_per_round"), 2);
}

TEST_F(Diagnose, AFewRecordsStandForALargerDataset) {
  const Json json = diagnose_json(brief({"--batches", "3"}));
  EXPECT_EQ(json.at("pass_batches"), 3);
  EXPECT_EQ(json.at("sampled_records"), 24);
}

TEST_F(Diagnose, WhereThePagesStayTheColdCacheIsLeftOut) {
  const int file = open(dataset_.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  const std::size_t bytes = fs::file_size(dataset_);
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  ASSERT_NE(map, MAP_FAILED);
  const fs::path json_file = folder_ / "result.json";
  const Result result = diagnose(brief({"--batches", "3", "--json", json_file.string()}));
  munmap(map, bytes);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("fetch stall: not measured: 100.0% of the dataset's pages stay"));
  EXPECT_THAT(result.out, HasSubstr("preparation stall"));
  EXPECT_THAT(result.out, Not(HasSubstr("cold cache:")));
  std::ifstream stream(json_file);
  const Json json = Json::parse(stream);
  EXPECT_FALSE(json.at("cold_cache").at("measured").get<bool>());
  EXPECT_TRUE(json.at("parts").at("fetch").is_null());
  EXPECT_EQ(json.at("rounds_ms_per_batch").at("cold_pass").size(), 0u);
}

TEST_F(Diagnose, AMemoryFileSystemHasNoColdCache) {
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "/dev/shm cannot be written";
  const fs::path path = fs::path("/dev/shm") / folder_.path().filename();
  fs::copy_file(dataset_, path);
  const Result result = diagnose_of(path, brief({"--batches", "3"}));
  fs::remove(path);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("memory file system"));
}

TEST_F(Diagnose, ComputeIsTheStepsTime) {
  const Json json = diagnose_json(
      {"--step-ms", "20", "--batches", "3", "--rounds", "2", "--batch-size", "16", "--size", "16"});
  EXPECT_GE(json.at("parts").at("compute").at("ms_per_batch").get<double>(), 19.9);
}

TEST_F(Diagnose, OfAStepOfNextToNoTimePreparationIsWhatIsWaitedFor) {
  // Threads that a busy machine delays take the less of a batch the more samples it has.
  const Json json = testing::best_of_longer(
      [this](int factor) {
        return diagnose_json({"--step-ms", "0.001", "--batches", "8", "--rounds", "3",
                              "--batch-size", std::to_string(40 * factor), "--size", "128"});
      },
      [](const Json& found) { return found.at("verdict").at("stage") == "preparation"; });
  const Json& parts = json.at("parts");
  EXPECT_GT(parts.at("preparation").at("measured_ms").get<double>(),
            parts.at("compute").at("ms_per_batch").get<double>());
  EXPECT_EQ(json.at("verdict").at("stage"), "preparation");
  EXPECT_GT(json.at("verdict").at("speedup_limit").get<double>(), 1.02);
}

TEST_F(Diagnose, ADeviceStageHasAShareOfTheDevicesTime) {
  // More batches than slots, since the times of the last ones may not be known yet.
  const Json json =
      diagnose_json(brief({"--batches", "30", "--decode", "device", "--convert", "uint8:nhwc"}));
  EXPECT_EQ(json.at("device_stage").at("name"), "crop");
  EXPECT_GT(json.at("device_stage").at("percent").get<double>(), 0);
  EXPECT_FALSE(diagnose_json(brief({"--batches", "3"})).contains("device_stage"));
}

TEST_F(Diagnose, EachStageOfTheDeviceHasAShareOfItsTime) {
  const fs::path recipe = folder_ / "erase.json";
  std::ofstream(recipe) << R"({"output": [32, 32], "ops": [
      {"op": "random_resized_crop"}, {"op": "random_erasing", "p": 1, "on": "device"}]})";
  const Json json =
      diagnose_json({"--step-ms", "1", "--rounds", "2", "--batch-size", "8", "--batches", "30",
                     "--recipe", recipe.string(), "--convert", "uint8:nhwc"});
  std::vector<std::string> names;
  for (const Json& stage : json.at("device_stages")) {
    names.push_back(stage.at("name"));
    EXPECT_GE(stage.at("percent").get<double>(), 0) << names.back();
  }
  EXPECT_THAT(names, ::testing::ElementsAre("move", "erase", "convert"));
}

TEST_F(Diagnose, ADatasetSmallerThanABatchIsDiagnosed) {
  const Json json = diagnose_json(
      {"--step-ms", "1", "--rounds", "2", "--batch-size", "64", "--size", "16", "--batches", "3"});
  EXPECT_EQ(json.at("sampled_records"), 40);
  EXPECT_EQ(json.at("pass_batches"), 1);
}

TEST_F(Diagnose, UsageErrorsEndWithTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"--step-ms", "0"},
      {"--step-ms", "soon"},
      {"--step-ms", "1", "--rounds", "1"},
      {"--step-ms", "1", "--batches", "0"},
      {"--step-ms", "1", "--batches", "5", "--seconds", "5"}};
  for (const auto& arguments : wrong) {
    const Result result = diagnose(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("millrace: "));
  }
}

TEST_F(Diagnose, ABadRecordIsNamed) {
  const fs::path path = folder_ / "one_bad.lmdb";
  std::vector<Bytes> images = pictures(2, 40, 40);
  images[1].assign(15, std::byte{'x'});
  write_pictures(path, images);
  const Result result =
      diagnose_of(path, {"--step-ms", "1", "--batches", "3", "--batch-size", "2"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("record 1"));
}

TEST_F(Diagnose, HelpHasExamples) {
  const Result result = run_program({MILLRACE_COMMAND, "diagnose", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("Examples:"));
}

}  // namespace
}  // namespace millrace
