// SPDX-License-Identifier: Apache-2.0
//
// The bench on a stand-in for a GPU: its measurements there, and that batches equal those of the
// host.
#include <gmock/gmock.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/pictures.h"
#include "support/run_program.h"
#include "support/waiting.h"
#include "support/well_formed.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

/// The command with a GPU.
class BenchOnCuda : public OverPictures {
 protected:
  BenchOnCuda() : OverPictures(pictures(40, 60, 50, 1)) {}

  Result run(const char* program, const char* command, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {program, command, dataset_.string(), "--size", "32"});
    return run_program(arguments);
  }

  Result bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--device", "cuda:0"});
    return run(MILLRACE_ON_STAND_IN, "bench", std::move(arguments));
  }

  Json json_of(const Result& result) const {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out);
  }

  Json bench_json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--json", "-"});
    return json_of(bench(std::move(arguments)));
  }

  /// Expects rates of plain copies from both kinds of memory, with idle and busy workers.
  static void expect_copies_beside_plain_ones(const Json& json) {
    const double copied = json.at("h2d_gb_per_second").get<double>();
    EXPECT_GT(copied, 0);
    for (const char* kind : {"", "_busy", "_malloc_host", "_malloc_host_busy"}) {
      SCOPED_TRACE(kind);
      const std::string name(kind);
      const double plain = json.at("plain_h2d" + name + "_gb_per_second").get<double>();
      EXPECT_GT(plain, 0);
      EXPECT_NEAR(json.at("h2d_percent_of_plain" + name).get<double>(), 100 * copied / plain, 0.01);
    }
  }

  std::string digest(const std::string& device, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(),
                     {"--device", device, "--batches", "6", "--warmup", "2", "--batch-size", "16",
                      "--seed", "3", "--digest", "--json", "-"});
    return json_of(run(MILLRACE_ON_STAND_IN, "bench", std::move(arguments))).at("digest");
  }
};

auto percent() { return AllOf(Ge(0.0), Le(100.0)); }

TEST_F(BenchOnCuda, MeasuresTheDeviceByItsEvents) {
  const Json json = bench_json({"--batches", "30", "--batch-size", "8", "--step-ms", "3"});
  EXPECT_EQ(json.at("options").at("device"), "cuda:0");
  EXPECT_EQ(json.at("batches"), 30);
  EXPECT_THAT(json.at("device_idle_percent").get<double>(), percent());
  EXPECT_GE(json.at("device_step_ms").get<double>(), 3.0);
  EXPECT_TRUE(json.at("idle_by_synthetic_percent").is_number());
  EXPECT_LE(json.at("idle_by_synthetic_percent").get<double>(), 100);
  EXPECT_THAT(json.at("copy_hidden_percent").get<double>(), percent());
  EXPECT_THAT(json.at("idle_floor_percent").get<double>(), percent());
  expect_copies_beside_plain_ones(json);
  const Json& consumer = json.at("consumer_us_per_batch");
  EXPECT_GT(consumer.at("mean").get<double>(), 0);
  EXPECT_LE(consumer.at("p50").get<double>(), consumer.at("p99").get<double>());
  EXPECT_TRUE(json.at("rss_growth_mb").is_number());
  EXPECT_EQ(json.at("device_memory_growth_mb").get<double>(), 0)
      << "memory of the device was taken after the warm-up";
  EXPECT_TRUE(json.at("first_step_ms").is_null()) << "there are no parts";
}

TEST_F(BenchOnCuda, AStepThatTakesItsTimeKeepsTheDeviceBusy) {
  const Json busy = bench_json({"--batches", "10", "--batch-size", "4", "--step-ms", "20"});
  const Json starved =
      bench_json({"--batches", "20", "--batch-size", "40", "--step-ms", "0.01", "--workers", "1"});
  EXPECT_LT(busy.at("device_idle_percent").get<double>(),
            starved.at("device_idle_percent").get<double>());
  EXPECT_GT(starved.at("device_idle_percent").get<double>(), 50);
}

TEST_F(BenchOnCuda, WithoutAStepNothingIsSaidOfIt) {
  // More batches than slots: copies of the last ones begin and end in the measured time.
  const Json json = bench_json({"--batches", "40", "--batch-size", "8"});
  for (const char* key : {"device_idle_percent", "idle_by_synthetic_percent", "idle_floor_percent",
                          "copy_hidden_percent", "device_step_ms"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_GT(json.at("h2d_gb_per_second").get<double>(), 0);
}

TEST_F(BenchOnCuda, PrintsRowsForTheDevice) {
  const Result result =
      bench({"--batches", "12", "--batch-size", "8", "--step-ms", "2", "--micro-batches", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* row :
       {"device idle", "idle's floor", "idle by synthetic input", "copies to the device",
        "of plain copies", "of plain, busy workers", "of cudaMallocHost", "dataset beside caches",
        "under steps", "trainer's thread", "first step after", "MB of the device"})
    EXPECT_THAT(result.out, HasSubstr(row));
}

// On the host over a bus that takes 150 ms for a batch. Its first half arrives 75 ms earlier. If a
// busy machine hides the difference, a slower bus is tried.
TEST_F(BenchOnCuda, TellsHowMuchEarlierTheFirstStepBeginsOnParts) {
  const std::vector<std::string> arguments = {
      "--batches",  "2", "--warmup",  "0", "--batch-size", "10", "--micro-batches", "2",
      "--prefetch", "1", "--step-ms", "1", "--json",       "-"};
  const auto over_slow_bus = [&](int factor) {
    std::vector<std::string> slow_bus = arguments;
    slow_bus.insert(slow_bus.end(), {"--copy-gb-s", std::to_string(0.0002 / factor)});
    return json_of(run(MILLRACE_ON_STAND_IN, "bench", slow_bus)).at("first_step_ms");
  };
  const Json on_host = best_of_longer(over_slow_bus, [](const Json& found) {
    return found.at("parts").get<double>() < found.at("whole").get<double>();
  });
  EXPECT_GT(on_host.at("parts").get<double>(), 75);
  EXPECT_GT(on_host.at("whole").get<double>(), 150);
  EXPECT_LT(on_host.at("parts").get<double>(), on_host.at("whole").get<double>());

  const Json on_cuda =
      bench_json(std::vector(arguments.begin(), arguments.end() - 2)).at("first_step_ms");
  EXPECT_GT(on_cuda.at("parts").get<double>(), 0);
  EXPECT_GT(on_cuda.at("whole").get<double>(), 0);
}

TEST_F(BenchOnCuda, TheDigestIsTheHosts) {
  EXPECT_EQ(digest("cuda:0", {}), digest("host", {}));
  EXPECT_EQ(digest("cuda:0", {"--step-ms", "1", "--micro-batches", "4"}),
            digest("host", {"--workers", "2"}));
}

TEST_F(BenchOnCuda, ConvertsOnTheDevice) {
  const std::string plain = digest("cuda:0", {});
  std::set<std::string> digests = {plain};
  for (const char* convert : {"uint8", "float16", "bfloat16:nhwc", "float32:nchw"}) {
    const std::string converted = digest("cuda:0", {"--convert", convert});
    EXPECT_EQ(converted, digest("host", {"--convert", convert})) << convert;
    EXPECT_TRUE(digests.insert(converted).second) << convert << " makes other bytes";
  }
  EXPECT_EQ(digest("cuda:0", {"--convert", "uint8:nhwc"}), plain) << "nothing changes";
  const Json options = bench_json({"--batches", "3", "--convert", "float16:nhwc"}).at("options");
  EXPECT_EQ(options.at("convert"), "float16:nhwc");
}

TEST_F(BenchOnCuda, DecodesOnTheDevice) {
  const auto measured = [&](const char* device, const char* decode,
                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {MILLRACE_ON_STAND_IN,
                                          "bench",
                                          dataset_.string(),
                                          "--size",
                                          "96",
                                          "--cache-bytes",
                                          "50MB",
                                          "--device",
                                          device,
                                          "--convert",
                                          "uint8:nhwc",
                                          "--decode",
                                          decode,
                                          "--batches",
                                          "9",
                                          "--warmup",
                                          "0",
                                          "--batch-size",
                                          "16",
                                          "--seed",
                                          "3",
                                          "--digest",
                                          "--json",
                                          "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(run_program(arguments));
  };
  const Json on_device = measured("cuda:0", "device");
  EXPECT_EQ(on_device.at("digest"), measured("host", "device").at("digest"));
  EXPECT_GT(on_device.at("ways").at("device (coefficients)").get<int>(), 40);
  EXPECT_FALSE(measured("cuda:0", "worker").at("ways").contains("device (coefficients)"));

  const Json by_workers = measured("cuda:0", "device", {"--decode-share", "0"});
  EXPECT_EQ(by_workers.at("digest"), on_device.at("digest"));
  EXPECT_FALSE(by_workers.at("ways").contains("device (coefficients)"));
  const Json shared = measured("cuda:0", "device", {"--decode-share", "0.3"});
  EXPECT_EQ(shared.at("digest"), on_device.at("digest"));
  int samples = 0;
  for (const auto& [way, count] : shared.at("ways").items()) samples += count.get<int>();
  const int shares = shared.at("ways").at("device (coefficients)").get<int>();
  EXPECT_GT(shares, 0);
  EXPECT_LT(shares, samples / 2);
}

TEST_F(BenchOnCuda, TracesCopiesAndStepsOnOneClock) {
  const fs::path trace = folder_ / "trace.json";
  const fs::path page = folder_ / "page.html";
  bench_json({"--batches", "20", "--batch-size", "8", "--step-ms", "2", "--trace", trace.string(),
              "--html", page.string()});
  std::map<std::string, std::size_t> counts;
  const Json events = Json::parse(std::ifstream(trace)).at("traceEvents");
  for (const Json& event : events) ++counts[event.at("name").get<std::string>()];
  EXPECT_GE(counts["step"], 20U);
  EXPECT_LE(counts["step"], 21U) << "the last of the warm-up may end in the measured time";
  EXPECT_GT(counts["copy"], 0U);
  EXPECT_GT(counts["decode"], 0U);
  std::ifstream stream(page);
  const std::string html{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(fault_in_markup(html), "");
  EXPECT_THAT(html, HasSubstr("device steps"));
  EXPECT_THAT(html, HasSubstr("cuda:0"));
}

TEST_F(BenchOnCuda, MatricesNeedCublas) {
  const Result result = bench({"--batches", "3", "--step", "gemm:256"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("needs cuBLAS"));
  EXPECT_THAT(result.err, HasSubstr("libcublas-of-the-stand-in.so"));
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "one line";
}

TEST_F(BenchOnCuda, MatricesAreAStepLikeOthers) {
  const Json json = json_of(run_program(
      {"/usr/bin/env", std::string("LD_LIBRARY_PATH=") + MILLRACE_CUBLAS_FOLDER,
       MILLRACE_ON_STAND_IN, "bench", dataset_.string(), "--device", "cuda:0", "--step", "gemm:256",
       "--batches", "20", "--batch-size", "8", "--micro-batches", "2", "--json", "-"}));
  EXPECT_EQ(json.at("options").at("step"), "gemm:256");
  EXPECT_TRUE(json.at("options").at("step_ms").is_null()) << "nobody has given it";
  EXPECT_GE(json.at("device_step_ms").get<double>(), 2.0);
  EXPECT_THAT(json.at("device_idle_percent").get<double>(), percent());
  EXPECT_THAT(json.at("copy_hidden_percent").get<double>(), percent());
  EXPECT_TRUE(json.at("idle_by_synthetic_percent").is_number());
  EXPECT_THAT(json.at("idle_floor_percent").get<double>(), percent());
  expect_copies_beside_plain_ones(json);
  EXPECT_GT(json.at("first_step_ms").at("parts").get<double>(), 0);
}

TEST_F(BenchOnCuda, ADeviceThatIsNotThereIsNamed) {
  const Result other = run(MILLRACE_ON_STAND_IN, "bench", {"--device", "cuda:7"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, HasSubstr("no CUDA device 7"));
}

TEST_F(BenchOnCuda, WhatDoesNotGoTogetherIsAUsageError) {
  const std::vector<std::vector<std::string>> wrong = {{"--step", "gemm:256", "--step-ms", "5"},
                                                       {"--step", "gemm:0"},
                                                       {"--step", "matrices"},
                                                       {"--copy-gb-s", "3"},
                                                       {"--convert", "float8"},
                                                       {"--convert", "float16:nchwc"}};
  for (const auto& arguments : wrong) {
    const Result result = bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << " " << arguments[1] << ": " << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(BenchOnCuda, DiagnoseAndTuneRunThere) {
  const Json diagnosed = json_of(run(MILLRACE_ON_STAND_IN, "diagnose",
                                     {"--device", "cuda:0", "--step-ms", "2", "--batch-size", "8",
                                      "--batches", "4", "--rounds", "2", "--json", "-"}));
  EXPECT_EQ(diagnosed.at("options").at("device"), "cuda:0");
  EXPECT_THAT(diagnosed.at("device_idle_percent").get<double>(), percent());
  const Json tuned = json_of(run(MILLRACE_ON_STAND_IN, "tune",
                                 {"--device", "cuda:0", "--step-ms", "5", "--batch-size", "4",
                                  "--budget-s", "0.6", "--json", "-", "--accept-noise"}));
  EXPECT_EQ(tuned.at("device"), "cuda:0");
}

}  // namespace
}  // namespace millrace
