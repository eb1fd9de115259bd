// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <millrace/topology.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pictures.h"
#include "support/run_program.h"
#include "support/well_formed.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

class Bench : public OverPictures {
 protected:
  static constexpr std::uint64_t records = 50;

  Bench() : OverPictures(pictures(records, 60, 90, 1)) {}

  Result bench(std::vector<std::string> arguments) const {
    return bench_of(dataset_, std::move(arguments));
  }

  static Result bench_of(const fs::path& dataset, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {MILLRACE_COMMAND, "bench", dataset.string()});
    return run_program(arguments);
  }

  Json bench_json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Result result = bench(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out);
  }

  std::string digest(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--batches", "12", "--warmup", "0", "--batch-size", "16",
                                       "--size", "48", "--digest"});
    return bench_json(std::move(arguments)).at("digest").get<std::string>();
  }
};

TEST_F(Bench, PrintsATableThatEndsWithTheVerdict) {
  const Result result =
      bench({"--batches", "10", "--warmup", "2", "--size", "32", "--workers", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* name :
       {"samples/s", "batches/s", "encoded MB/s", "stall", "ahead", "device idle",
        "first batch after", "worker time", "worker utilization", "peak RSS beyond the map",
        "pinned / device memory", "50 records", "read", "decode", "augment", "copy", "trainer",
        "waits for input", "measured 10 batches"})
    EXPECT_THAT(result.out, HasSubstr(name));
  const std::size_t advice = result.out.rfind('\n', result.out.size() - 2) + 1;
  const std::size_t verdict = result.out.rfind('\n', advice - 2) + 1;
  EXPECT_THAT(result.out.substr(verdict, advice - verdict), HasSubstr("bounds the run"));
  EXPECT_GT(result.out.size() - advice, 20U) << "what to change";
}

TEST_F(Bench, WarnsOfMoreWorkersThanCores) {
  const fs::path file = folder_ / "result.json";
  const std::string many = std::to_string(read_topology().usable_cpus + 1);
  const Result result = bench({"--batches", "2", "--warmup", "0", "--batch-size", "4", "--size",
                               "32", "--workers", many, "--json", file.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("oversubscribed: " + many + " workers on"));
  EXPECT_THAT(Json::parse(std::ifstream(file)).at("warnings")[0].get<std::string>(),
              HasSubstr("oversubscribed: " + many));
}

TEST_F(Bench, WritesTheSameAsJson) {
  const fs::path file = folder_ / "result.json";
  const Result result = bench(
      {"--batches", "20", "--warmup",  "3",          "--batch-size",    "10", "--size",     "32",
       "--step-ms", "2",  "--workers", "2",          "--micro-batches", "2",  "--prefetch", "3",
       "--seed",    "9",  "--json",    file.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("samples/s"));
  std::ifstream stream(file);
  const Json json = Json::parse(stream);
  EXPECT_EQ(json.at("batches"), 20);
  EXPECT_EQ(json.at("samples"), 200);
  EXPECT_NEAR(json.at("samples_per_second").get<double>(), 200 / json.at("seconds").get<double>(),
              0.01);
  EXPECT_GE(json.at("seconds").get<double>(),
            0.030);  // 20 steps of 2 ms, less the two that may be queued at either end
  for (const char* wait : {"stall_ms", "ahead_ms"}) {
    const Json& durations = json.at(wait);
    EXPECT_LE(durations.at("p50").get<double>(), durations.at("p95").get<double>()) << wait;
    EXPECT_LE(durations.at("p95").get<double>(), durations.at("p99").get<double>()) << wait;
    EXPECT_LE(durations.at("p99").get<double>(), durations.at("max").get<double>() * 1.01) << wait;
  }
  EXPECT_GE(json.at("device_idle_percent").get<double>(), 0);
  EXPECT_LE(json.at("device_idle_percent").get<double>(), 100);
  EXPECT_LE(json.at("idle_by_synthetic_percent").get<double>(), 100);
  EXPECT_GE(json.at("copy_hidden_percent").get<double>(), 0);
  EXPECT_LE(json.at("copy_hidden_percent").get<double>(), 100);
  EXPECT_NEAR(json.at("device_step_ms").get<double>(), 2, 1e-6);
  EXPECT_GT(json.at("h2d_gb_per_second").get<double>(), 0);
  EXPECT_GT(json.at("plain_h2d_gb_per_second").get<double>(), 0);
  EXPECT_GT(json.at("h2d_percent_of_plain").get<double>(), 0);
  EXPECT_GT(json.at("consumer_us_per_batch").at("mean").get<double>(), 0);
  EXPECT_TRUE(json.at("rss_growth_mb").is_number());
  EXPECT_TRUE(json.at("device_memory_growth_mb").is_null()) << "the host's is in the process's own";
  for (const char* kind : {"parts", "whole"})
    EXPECT_GT(json.at("first_step_ms").at(kind).get<double>(), 0) << kind;
  EXPECT_GT(json.at("first_batch_ms").get<double>(), 0);
  double shares = 0;
  for (const char* stage : {"read", "decode", "augment"})
    shares += json.at("worker_time_percent").at(stage).get<double>();
  EXPECT_NEAR(shares, 100, 0.1);
  EXPECT_GT(json.at("peak_rss_beyond_map_mb").get<double>(), 1);
  const Json& limit = json.at("memory_limit_mb");
  EXPECT_EQ(limit.at("slots"), json.at("pinned_mb"));
  EXPECT_GE(limit.at("scratch").get<double>(), 64) << "of the workers' decoders";
  EXPECT_GE(limit.at("total").get<double>(),
            limit.at("slots").get<double>() + limit.at("scratch").get<double>());
  const double slot_mb = 10.0 * (32 * 32 * 3 + 8) / 1e6;
  EXPECT_NEAR(json.at("pinned_mb").get<double>(), 3 * slot_mb, 0.01);
  EXPECT_NEAR(json.at("staging_mb").get<double>(), 2 * slot_mb, 0.01)
      << "batches of two parts go through two staging slots";
  EXPECT_NEAR(json.at("device_mb").get<double>(), 4 * slot_mb, 0.01);
  EXPECT_TRUE(json.at("ceiling").is_null());
  EXPECT_TRUE(json.at("digest").is_null());
  EXPECT_FALSE(json.at("verdict").at("text").get<std::string>().empty());
  EXPECT_EQ(json.at("options").at("workers"), 2);
  EXPECT_EQ(json.at("options").at("seed"), 9);
  EXPECT_EQ(json.at("options").at("step_ms"), 2);
  EXPECT_EQ(json.at("options").at("recipe_program").at("output").at(0), 32);
  ASSERT_GE(json.at("nodes").size(), 1U);
  unsigned workers = 0;
  for (const Json& node : json.at("nodes")) {
    workers += node.at("workers").get<unsigned>();
    for (const char* key :
         {"node", "workers_bound", "slots", "samples", "samples_by_helpers", "memory_on_node"})
      EXPECT_TRUE(node.contains(key)) << key;
  }
  EXPECT_EQ(workers, 2U);
  for (const char* key : {"cpu", "cores", "numa_nodes", "commit", "steal_percent"})
    EXPECT_TRUE(json.at("machine").contains(key)) << key;
  for (const char* key : {"libjpeg-turbo", "highway", "onetbb", "lmdb", "hwloc"})
    EXPECT_THAT(json.at("machine").at("libraries").at(key).get<std::string>(), Not("")) << key;
}

TEST_F(Bench, WritesAPage) {
  const fs::path file = folder_ / "result.html";
  const Result result = bench({"--batches", "10", "--size", "32", "--step-ms", "1", "--workers",
                               "2", "--html", file.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("samples/s"));
  std::ifstream stream(file);
  const std::string html{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  EXPECT_EQ(fault_in_markup(html), "");
  for (const std::string& text :
       {dataset_.string(), std::string("bounds the run"), std::string("10 batches in")})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST_F(Bench, TheSameSeedGivesTheSameDigestHoweverItIsMade) {
  const std::string expected = digest({"--seed", "3", "--workers", "1"});
  EXPECT_EQ(expected.size(), 16u);
  EXPECT_EQ(digest({"--seed", "3", "--workers", "2", "--prefetch", "1"}), expected);
  EXPECT_EQ(digest({"--seed", "3", "--workers", "4", "--prefetch", "6", "--micro-batches", "4"}),
            expected);
  EXPECT_EQ(digest({"--seed", "3", "--step-ms", "1"}), expected);
  EXPECT_EQ(digest({"--seed", "3", "--index-bytes", "0"}), expected);
  EXPECT_NE(digest({"--seed", "4"}), expected);
  EXPECT_NE(digest({"--seed", "3", "--recipe", "eval"}), expected);
}

TEST_F(Bench, AutoStepIsALittleLongerThanTheLoadersTime) {
  const Json json =
      bench_json({"--step-ms", "auto", "--batches", "30", "--batch-size", "16", "--size", "64"});
  EXPECT_TRUE(json.at("options").at("step_auto").get<bool>());
  EXPECT_GT(json.at("options").at("step_ms").get<double>(), 0);
}

TEST_F(Bench, CeilingComparesWithThePlainDecode) {
  const Json ceiling = bench_json({"--ceiling", "--ceiling-seconds", "0", "--batches", "5",
                                   "--size", "32", "--workers", "1"})
                           .at("ceiling");
  for (const char* ratio : {"rate_ratio", "cpu_ratio"}) {
    const double median = ceiling.at(ratio).get<double>();
    EXPECT_GT(median, 0) << ratio;
    EXPECT_LE(ceiling.at(std::string(ratio) + "_min").get<double>(), median) << ratio;
    EXPECT_GE(ceiling.at(std::string(ratio) + "_max").get<double>(), median) << ratio;
    EXPECT_LE(ceiling.at(std::string(ratio) + "_low").get<double>(), median) << ratio;
    EXPECT_GE(ceiling.at(std::string(ratio) + "_high").get<double>(), median) << ratio;
  }
  EXPECT_GE(ceiling.at("pairs").get<int>(), 20);
  EXPECT_GT(ceiling.at("reference_images_per_second").get<double>(), 0);
}

TEST_F(Bench, TakesARecipeFromAFile) {
  const fs::path file = folder_ / "recipe.json";
  std::ofstream(file)
      << R"({"output": [40, 24], "ops": [{"op": "resize", "size": 48}, {"op": "center_crop"}]})";
  const Json json = bench_json({"--recipe", file.string(), "--batches", "3"});
  EXPECT_EQ(json.at("options").at("recipe_program").at("output"), Json({40, 24}));

  std::ofstream(file) << R"({"output": [40, 24], "flop": 1})";
  const Result result = bench({"--recipe", file.string(), "--batches", "3"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("flop"));
  EXPECT_THAT(result.err, HasSubstr(file.string()));
}

TEST_F(Bench, ADatasetSmallerThanABatchIsRepeated) {
  const Json json = bench_json({"--batch-size", "128", "--batches", "3", "--size", "16"});
  EXPECT_EQ(json.at("samples"), 3 * 128);
}

TEST_F(Bench, UsageErrorsEndWithTwo) {
  const std::vector<std::vector<std::string>> wrong = {{"--batch-size", "0"},
                                                       {"--step-ms", "soon"},
                                                       {"--step-ms", "-1"},
                                                       {"--batches", "5", "--seconds", "5"},
                                                       {"--digest"},
                                                       {"--device", "gpu"},
                                                       {"--device", "cuda:"},
                                                       {"--device", "cuda:-1"},
                                                       {"--device", "cuda:1x"},
                                                       {"--step", "gemm:256"},
                                                       {"--step", "gemm:256", "--step-ms", "5"},
                                                       {"--convert", "int64"},
                                                       {"--convert", "uint8:hwc"},
                                                       {"--micro-batches", "a lot of"},
                                                       {"--nonsense"},
                                                       {"--html", "-"},
                                                       {"--seconds", "0"}};
  for (const auto& arguments : wrong) {
    const Result result = bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << ": " << result.err;
    EXPECT_EQ(result.out, "") << arguments[0];
    EXPECT_THAT(result.err, HasSubstr("millrace: ")) << arguments[0];
  }
}

TEST_F(Bench, MatricesNeedAGpu) {
  const Result result = bench({"--step", "gemm:256"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--step"));
  EXPECT_THAT(result.err, HasSubstr("needs a GPU"));
}

// More than the GPUs of any machine that runs these tests.
TEST_F(Bench, ADeviceThatIsNotThereIsOneLine) {
  for (const char* command : {"bench", "diagnose", "tune"}) {
    const Result result = run_program(
        {MILLRACE_COMMAND, command, dataset_.string(), "--device", "cuda:999", "--step-ms", "5"});
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_EQ(result.out, "") << command;
    EXPECT_THAT(result.err, HasSubstr("no CUDA device")) << command;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << command << ": " << result.err;
  }
}

TEST_F(Bench, ErrorsNameWhatIsWrong) {
  const Result missing = bench_of(folder_ / "missing.lmdb", {});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_THAT(missing.err, HasSubstr("missing.lmdb"));

  const Result too_many_parts = bench({"--batch-size", "4", "--micro-batches", "8"});
  EXPECT_EQ(too_many_parts.exit_code, 1);
  EXPECT_THAT(too_many_parts.err, HasSubstr("micro_batches"));

  const Result no_number = bench({"--ceiling", "--ceiling-seconds", "nan"});
  EXPECT_EQ(no_number.exit_code, 2);
  EXPECT_THAT(no_number.err,
              HasSubstr("--ceiling-seconds: must be a number from 0 to 3600, not \"nan\""));

  const Result no_recipe = bench({"--recipe", "training"});
  EXPECT_EQ(no_recipe.exit_code, 1);
  EXPECT_THAT(no_recipe.err, HasSubstr("training: no such file; give train, eval, resnet, "));

  const Result no_place =
      bench({"--batches", "1", "--json", (folder_ / "nowhere" / "result.json").string()});
  EXPECT_EQ(no_place.exit_code, 1);
  EXPECT_THAT(no_place.err, HasSubstr("nowhere/result.json"));

  const Result no_page =
      bench({"--batches", "1", "--html", (folder_ / "nowhere" / "result.html").string()});
  EXPECT_EQ(no_page.exit_code, 1);
  EXPECT_THAT(no_page.err, HasSubstr("nowhere/result.html: cannot be written"));
}

TEST_F(Bench, ABadRecordIsNamed) {
  const fs::path path = folder_ / "one_bad.lmdb";
  std::vector<Bytes> images = pictures(2, 40, 40);
  images[1].assign(15, std::byte{'x'});
  write_pictures(path, images);
  const Result result = bench_of(path, {"--batches", "3", "--batch-size", "2"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("record 1 of " + path.string() +
                                    " is bad: not a JPEG, PNG, WebP or PNM (starts "));
  EXPECT_EQ(result.err.find("record 1"), result.err.rfind("record 1")) << result.err;
}

TEST_F(Bench, TellsHowFarAReducedResolutionIsFromTheExactOne) {
  const fs::path file = folder_ / "recipe.json";
  std::ofstream(file) << R"({"output": [24, 24], "resolution": "reduced",
                             "ops": [{"op": "resized_crop", "box": [0, 0, 60, 60]}]})";
  // More samples than can be made before the measurement begins.
  const std::vector<std::string> options{"--recipe", file.string(), "--batches",
                                         "12",       "--warmup",    "0"};
  const Json json = bench_json(options);
  const Json& reduced = json.at("reduced");
  EXPECT_EQ(reduced.at("compared"), records);
  EXPECT_EQ(reduced.at("differing"), records);
  EXPECT_GT(reduced.at("psnr_db"), 10);
  EXPECT_LE(reduced.at("lowest_psnr_db"), reduced.at("psnr_db"));
  EXPECT_EQ(json.at("ways").size(), 1U);
  EXPECT_TRUE(json.at("ways").contains("millrace (reduced to 1/2)"));
  EXPECT_THAT(bench(options).out,
              ContainsRegex("reduced resolution +50 of 50 samples differ from the exact ones; PSNR "
                            "[0-9.]+ dB, lowest [0-9.]+ dB"));
  EXPECT_EQ(bench_json({"--batches", "3"}).at("reduced"), nullptr);
}

TEST_F(Bench, AnEmptyDatasetIsRefused) {
  const fs::path path = folder_ / "empty.lmdb";
  DatasetWriter(path).finish();
  const Result result = bench_of(path, {"--batches", "3"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("empty"));
}

TEST_F(Bench, HelpHasExamples) {
  const Result result = run_program({MILLRACE_COMMAND, "bench", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Examples:"), HasSubstr("--step-ms")));
}

TEST_F(Bench, LetsTheNeedChooseTheWorkers) {
  const Json json = bench_json({"--seconds", "1", "--size", "32", "--batch-size", "4", "--step-ms",
                                "20", "--workers", "auto"});
  EXPECT_GE(json.at("active_workers").get<double>(), 1);
  EXPECT_LE(json.at("active_workers").get<double>(),
            json.at("options").at("workers").get<double>());
  const Result wrong = bench({"--workers", "many"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("\"many\""));
}

TEST_F(Bench, ImitatesASlowBus) {
  // 16 x 32 x 32 x 3 bytes in 200 ms.
  const Json json = bench_json({"--batches", "10", "--warmup", "2", "--size", "32", "--batch-size",
                                "16", "--copy-gb-s", "0.00025"});
  EXPECT_EQ(json.at("verdict").at("stage"), "copy") << json.at("verdict") << json.at("stages");
}

}  // namespace
}  // namespace millrace
