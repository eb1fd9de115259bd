// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks on a GPU over the stand-in for CUDA. Each runs to its end, compares its result
// with the host's, and has the counters for the table of tests/gpu.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::run_program;
using Json = nlohmann::json;

/// Runs the benchmarks that match `filter`; returns the results by name.
std::map<std::string, Json> runs_of(const std::string& filter,
                                    const std::vector<std::string>& options = {}) {
  std::vector<std::string> command = {MILLRACE_GPU_BENCHMARKS, "--small", "--benchmark_format=json",
                                      "--benchmark_filter=" + filter};
  command.insert(command.end(), options.begin(), options.end());
  const auto result = run_program(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  std::map<std::string, Json> runs;
  for (const Json& run : json.at("benchmarks")) {
    const std::string name = run.at("name");
    runs[name.substr(0, name.find("/iterations:"))] = run;
  }
  return runs;
}

TEST(GpuBenchmarks, TimeKernelsBesideCopiesAtFourSizes) {
  const auto runs = runs_of("(Convert/.*/bfloat16/nchw/half_flipped|Mix/)");
  std::set<std::string> names;
  for (const auto& [name, run] : runs) {
    names.insert(name);
    EXPECT_FALSE(run.value("error_occurred", false)) << name;
    EXPECT_GT(run.at("of_copy").get<double>(), 0) << name;
    EXPECT_GT(run.at("of_bandwidth").get<double>(), 0) << name;
  }
  std::set<std::string> expected;
  for (const std::string side : {"224", "299", "384", "518"}) {
    const std::string shape = "2x" + side + "x" + side + "x3/";
    expected.insert("Convert/" + shape + "bfloat16/nchw/half_flipped");
    for (const char* kind : {"mixup", "cutmix"}) expected.insert("Mix/" + shape + kind);
  }
  EXPECT_EQ(names, expected);
}

/// Writes three JPEGs of noise, or grey ones.
void write_jpegs(const testing::TemporaryFolder& folder, bool grey = false) {
  for (unsigned n = 0; n < 3; ++n) {
    testing::Image image = testing::noise(150, 120, n);
    if (grey) std::ranges::fill(image.pixels, std::uint8_t{128});
    const testing::Bytes jpeg = testing::encode(image, testing::encodings().front());
    std::ofstream(folder / (std::to_string(n) + ".jpg"), std::ios::binary)
        .write(reinterpret_cast<const char*>(jpeg.data()),
               static_cast<std::streamsize>(jpeg.size()));
  }
}

TEST(GpuBenchmarks, TimeCropsOfJpegs) {
  const testing::TemporaryFolder folder;
  write_jpegs(folder);
  const auto runs = runs_of("JpegCrop", {"--photos", folder.path().string()});
  ASSERT_EQ(runs.size(), 2U);
  for (const auto& [name, run] : runs) {
    EXPECT_FALSE(run.value("error_occurred", false)) << name << run.value("error_message", "");
    const auto count = [&values = run](const char* of) { return values.at(of).get<double>(); };
    EXPECT_GE(count("part_warps"), count("scan_warps")) << name;
    EXPECT_GE(count("mcu_warps"), count("part_warps")) << name;
    EXPECT_LE(count("transform_warps"), 8 * count("block_warps")) << name;
    EXPECT_GE(count("transform_warps"), count("block_warps")) << name;
    EXPECT_GE(count("symbol_longest"), count("symbol_warps") / count("scan_warps")) << name;
    EXPECT_LE(count("long_warps"), count("symbol_warps")) << name;
    EXPECT_LE(count("sector_warps"), count("symbol_warps")) << name;
    EXPECT_GT(count("sector_warps"), 0) << name;
  }
  EXPECT_GT(runs.at("JpegCrop/224/64").at("samples_per_second").get<double>(), 0);
  EXPECT_EQ(runs.at("JpegCrop/224/64").at("samples_per_launch"), 2);
}

TEST(GpuBenchmarks, CountTheSymbolsOfAScan) {
  const testing::TemporaryFolder folder;
  write_jpegs(folder, true);
  const Json run =
      runs_of("JpegCropCounts", {"--photos", folder.path().string()}).at("JpegCropCounts/224");
  // Each block of a grey image has a DC difference and an end-of-block symbol.
  EXPECT_DOUBLE_EQ(run.at("symbol_warps").get<double>(), 2 * run.at("block_warps").get<double>());
  EXPECT_DOUBLE_EQ(run.at("symbol_longest").get<double>(),
                   2 * run.at("block_longest").get<double>());
  EXPECT_EQ(run.at("long_warps"), 0);
}

TEST(GpuBenchmarks, TimeCropsAndCountTheirWork) {
  const testing::TemporaryFolder folder;
  write_jpegs(folder);
  const auto runs = runs_of("^Crop", {"--photos", folder.path().string()});
  ASSERT_EQ(runs.size(), 2U);
  for (const auto& [name, run] : runs) {
    EXPECT_FALSE(run.value("error_occurred", false)) << name << run.value("error_message", "");
    // 224 columns are 7 warps in a round of each row.
    EXPECT_DOUBLE_EQ(run.at("across_warps"), 7 * run.at("rows").get<double>()) << name;
    EXPECT_EQ(run.at("across_rounds"), run.at("rows")) << name;
    EXPECT_GT(run.at("tile_warps").get<double>(), 0) << name;
    EXPECT_LE(run.at("tile_rounds"), run.at("tile_warps")) << name;
    EXPECT_LE(run.at("source_pixels").get<double>(), 150 * 120) << name;
    EXPECT_GE(64 * run.at("value_warps").get<double>(), run.at("values")) << name;
  }
  EXPECT_LE(runs.at("CropCounts/224").at("packed").get<double>(), 1);
  EXPECT_GT(runs.at("Crop/224/64").at("samples_per_second").get<double>(), 0);
  EXPECT_EQ(runs.at("Crop/224/64").at("samples_per_launch"), 2);
}

TEST(GpuBenchmarks, TellThatCropsNeedPhotographs) {
  for (const auto& [name, run] : runs_of("Crop")) {
    EXPECT_TRUE(run.at("error_occurred")) << name;
    EXPECT_THAT(run.at("error_message").get<std::string>(), HasSubstr("--photos FOLDER")) << name;
  }
}

TEST(GpuBenchmarks, TellTheBandwidthAndWhatPinnedMemoryCosts) {
  const auto runs = runs_of("DeviceBandwidth|PinnedAllocation");
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_GT(runs.at("DeviceBandwidth").at("bytes_per_second").get<double>(), 0);
  for (const char* kind : {"device", "cudaMallocHost"}) {
    EXPECT_GT(
        runs.at(std::string("PinnedAllocation/") + kind + "/1MiB").at("ms_per_gib").get<double>(),
        0);
  }
}

TEST(GpuBenchmarks, TimeLaunchesBesideSlotsThatAreFreed) {
  const auto runs = runs_of("LaunchLatency");
  ASSERT_EQ(runs.size(), 3U);
  for (const char* freed : {"nothing_freed", "memory_freed", "pipeline_ended"}) {
    const Json& run = runs.at(std::string("LaunchLatency/") + freed);
    EXPECT_GE(run.at("launches").get<double>(), 4) << freed;
    EXPECT_GT(run.at("p50_us").get<double>(), 0) << freed;
    EXPECT_LE(run.at("p50_us").get<double>(), run.at("p99_us").get<double>()) << freed;
    EXPECT_LE(run.at("p99_us").get<double>(), run.at("max_us").get<double>()) << freed;
  }
}

TEST(GpuBenchmarks, RefuseOtherOptions) {
  const auto result = run_program({MILLRACE_GPU_BENCHMARKS, "--tiny"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--tiny"));
}

}  // namespace
}  // namespace millrace
