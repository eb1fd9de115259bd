// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "measure/bench/bench_output.h"
#include "measure/bench/run_setup.h"
#include "measure/machine/process.h"
#include "measure/text/figures.h"

namespace millrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = Figures::Json;

std::map<std::string, std::string> rows_of(const BenchRecord& record) {
  std::map<std::string, std::string> rows;
  for (const auto& row : figures_of(record).rows()) rows[row.at(0)] = row.at(1);
  return rows;
}

TEST(Figures, HaveAKeyForProgramsAndARowForPeople) {
  Figures figures;
  figures.add("first_batch_ms", "first batch after", "{:.1f} ms", 12.345);
  figures.key("seconds", 5);
  figures.row("both", "12.345 ms in 5 s");
  EXPECT_EQ(figures.json(), Json({{"first_batch_ms", 12.345}, {"seconds", 5}}));
  EXPECT_THAT(figures.rows(), ElementsAre(ElementsAre("first batch after", "12.3 ms"),
                                          ElementsAre("both", "12.345 ms in 5 s")));
  EXPECT_EQ(figures.text("first_batch_ms"), "12.3 ms");
}

TEST(BenchFigures, HaveRowsForWhatWasMeasuredAlone) {
  BenchRecord record;
  auto rows = rows_of(record);
  for (const char* name : {"idle by synthetic input", "copies to the device", "first step after",
                           "idle's floor", "of cudaMallocHost", "of plain, busy workers",
                           "dataset beside caches", "by rate", "bad records", "digest"})
    EXPECT_EQ(rows.count(name), 0U) << name;
  EXPECT_EQ(rows.at("device idle"), "no step to be idle for");
  EXPECT_THAT(rows.at("memory since warm-up"), Not(HasSubstr("device")));
  record.result.copies = CopyRate{1e6, 20e9};
  EXPECT_EQ(rows_of(record).at("copies to the device"), "20.00 GB/s");
}

TEST(BenchWarnings, NameOtherDecodersThatTookMoreThanHalfOfTheTime) {
  Report report;
  EXPECT_TRUE(warnings_of({}, report, 0).empty());
  report.decoders = {{"millrace", 8}, {"millrace (PNM)", 1}, {"libpng", 1}, {"libwebp (lossy)", 2}};
  report.decoder_seconds = {
      {"millrace", 5}, {"millrace (PNM)", 1}, {"libpng", 2}, {"libwebp (lossy)", 4}};
  EXPECT_TRUE(warnings_of({}, report, 0).empty());
  report.decoder_seconds["libwebp (lossy)"] = 7;
  EXPECT_THAT(warnings_of({}, report, 0),
              ElementsAre(HasSubstr("made 3 of 12 samples and took 60% of their time, libwebp "
                                    "(lossy) most")));
}

TEST(BenchFigures, HaveAllKeysWhateverWasMeasured) {
  const Json json = figures_of(BenchRecord()).json();
  for (const char* key :
       {"idle_by_synthetic_percent", "h2d_gb_per_second", "first_step_ms", "ceiling", "digest",
        "device_idle_percent", "worker_delay_percent", "rss_growth_mb", "peak_rss_beyond_map_mb",
        "idle_floor_percent", "plain_h2d_busy_gb_per_second", "h2d_percent_of_plain_malloc_host",
        "dataset_mb", "last_level_cache_mb"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
}

// In a sandbox without /proc, figures must not be 0 MB.
TEST(BenchFigures, DoNotKnowMemoryThatTheSystemDoesNotTell) {
  EXPECT_EQ(own_memory("/no/such/folder"), std::nullopt);
  EXPECT_EQ(ResidentMemory({}, "/no/such/folder").peak(), std::nullopt);
  EXPECT_GT(ResidentMemory({}).peak().value_or(0), 100'000U);
  BenchRecord record;
  EXPECT_EQ(rows_of(record).at("peak RSS beyond the map"), "unknown");
  EXPECT_EQ(rows_of(record).at("memory since warm-up"), "unknown for the process");
  record.result.peak_rss_beyond_map = 1'500'000;
  EXPECT_EQ(rows_of(record).at("peak RSS beyond the map"), "1.5 MB");
}

TEST(BenchFigures, TellCopiesBesidePlainOnesAndWhatPartsSave) {
  BenchRecord record;
  record.result.copies = CopyRate{1e6, 20e9};
  record.result.copy_hidden = 0.975;
  record.result.device_memory_growth = 2'500'000;
  record.result.rss_growth = -1'000'000;
  record.baselines = {.idle_by_synthetic = 0.0125,
                      .idle_floor = 0.0004,
                      .plain_copies = {.idle = CopyRates{25e9, 20.2e9}},
                      .first_step = FirstStep{12, 30.5}};
  const auto rows = rows_of(record);
  EXPECT_THAT(rows.at("idle by synthetic input"), HasSubstr("1.25%"));
  EXPECT_EQ(rows.at("copies to the device"), "20.00 GB/s; 97.5% of their time under steps");
  EXPECT_EQ(rows.at("of plain copies"), "80.0% of 25.00 GB/s, paced 99.0% of 20.20 GB/s");
  EXPECT_THAT(rows.at("first step after"), HasSubstr("18.5 ms saved"));
  EXPECT_EQ(rows.at("memory since warm-up"), "-1.0 MB of the process, +2.5 MB of the device");
  EXPECT_EQ(rows.at("idle's floor"), "0.04% (the same steps without a loader, by the same events)");
  EXPECT_EQ(rows.count("of cudaMallocHost"), 0U) << "it was not measured";
  const Json json = figures_of(record).json();
  EXPECT_DOUBLE_EQ(json.at("h2d_percent_of_plain").get<double>(), 80);
  EXPECT_DOUBLE_EQ(json.at("device_memory_growth_mb").get<double>(), 2.5);
  EXPECT_DOUBLE_EQ(json.at("idle_floor_percent").get<double>(), 0.04);
}

TEST(BenchFigures, TellCopiesBesidePlainOnesOfBothKindsOfMemoryAndWithBusyWorkers) {
  BenchRecord record;
  record.result.copies = CopyRate{1e6, 20e9};
  record.baselines = {
      .plain_copies = {.idle = CopyRates{25e9, 20e9},
                       .busy = CopyRates{20e9, 16e9},
                       .under_steps = CopyRates{32e9, 25e9}},
      .driver_copies = {.idle = CopyRates{40e9, 32e9}, .busy = CopyRates{16e9, 8e9}}};
  const auto rows = rows_of(record);
  EXPECT_EQ(rows.at("copies to the device"), "20.00 GB/s");
  EXPECT_EQ(rows.at("of plain, busy workers"), "100.0% of 20.00 GB/s, paced 125.0% of 16.00 GB/s");
  EXPECT_EQ(rows.at("of cudaMallocHost"), "50.0% of 40.00 GB/s, paced 62.5% of 32.00 GB/s");
  EXPECT_EQ(rows.at("of that, busy workers"), "125.0% of 16.00 GB/s, paced 250.0% of 8.00 GB/s");
  const Json json = figures_of(record).json();
  for (const auto& [key, value] :
       std::map<std::string, double>{{"plain_h2d_gb_per_second", 25},
                                     {"h2d_percent_of_plain", 80},
                                     {"plain_h2d_busy_gb_per_second", 20},
                                     {"h2d_percent_of_plain_busy", 100},
                                     {"plain_h2d_malloc_host_gb_per_second", 40},
                                     {"h2d_percent_of_plain_malloc_host", 50},
                                     {"plain_h2d_malloc_host_busy_gb_per_second", 16},
                                     {"h2d_percent_of_plain_malloc_host_busy", 125},
                                     {"paced_h2d_gb_per_second", 20},
                                     {"h2d_percent_of_paced", 100},
                                     {"paced_h2d_busy_gb_per_second", 16},
                                     {"h2d_percent_of_paced_busy", 125},
                                     {"paced_h2d_malloc_host_gb_per_second", 32},
                                     {"h2d_percent_of_paced_malloc_host", 62.5},
                                     {"paced_h2d_malloc_host_busy_gb_per_second", 8},
                                     {"h2d_percent_of_paced_malloc_host_busy", 250},
                                     {"h2d_percent_of_paced_under_steps", 80}})
    EXPECT_DOUBLE_EQ(json.at(key).get<double>(), value) << key;
}

TEST(BenchFigures, StateTheDatasetsSizeBesideTheCaches) {
  BenchRecord record;
  record.dataset_bytes = 55'100'000;
  EXPECT_EQ(rows_of(record).at("dataset beside caches"),
            "55.1 MB in files, last-level caches of unknown size");
  record.machine.last_level_cache_bytes = 33'000'000;
  EXPECT_EQ(rows_of(record).at("dataset beside caches"),
            "55.1 MB in files, 33.0 MB of last-level caches");
  record.dataset_bytes = 20'000'000;
  EXPECT_EQ(rows_of(record).at("dataset beside caches"),
            "20.0 MB in files, 33.0 MB of last-level caches, which may hold all of it");
  const Json json = figures_of(record).json();
  EXPECT_DOUBLE_EQ(json.at("dataset_mb").get<double>(), 20);
  EXPECT_DOUBLE_EQ(json.at("last_level_cache_mb").get<double>(), 33);
}

TEST(BenchFigures, TellTheCeiling) {
  BenchRecord record;
  record.ceiling =
      CeilingResult{{1.5, 1.25, 1.75, 1.45, 1.55}, {2, 1, 3, 1.75, 2.25}, 900, 600, 24};
  EXPECT_EQ(rows_of(record).at("by rate"),
            "1.500 x T by rate (95% 1.450 to 1.550; 24 pairs, 1.250 to 1.750)");
  EXPECT_EQ(figures_of(record).json().at("ceiling"), Json({{"rate_ratio", 1.5},
                                                           {"rate_ratio_min", 1.25},
                                                           {"rate_ratio_max", 1.75},
                                                           {"rate_ratio_low", 1.45},
                                                           {"rate_ratio_high", 1.55},
                                                           {"cpu_ratio", 2.0},
                                                           {"cpu_ratio_min", 1.0},
                                                           {"cpu_ratio_max", 3.0},
                                                           {"cpu_ratio_low", 1.75},
                                                           {"cpu_ratio_high", 2.25},
                                                           {"samples_per_second", 900.0},
                                                           {"reference_images_per_second", 600.0},
                                                           {"pairs", 24}}));
}

TEST(Ceiling, KnowsBetweenWhichPairsTheMedianLies) {
  std::vector<double> values(20);
  std::iota(values.begin(), values.end(), 1);
  const Spread spread = spread_of({values.rbegin(), values.rend()});
  EXPECT_EQ(spread.median, 10.5);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 20);
  EXPECT_EQ(spread.low, 6);
  EXPECT_EQ(spread.high, 15);
  EXPECT_EQ(spread_of({3}).high, 3);
}

// With skewed values, as from slow periods, the interval has the median in 95 of 100 runs.
TEST(Ceiling, IsRightInNineteenOfTwentyRuns) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(0, 0.3);  // its median is 1
  for (const std::size_t pairs : {20U, 33U, 80U}) {
    int right = 0;
    for (int run = 0; run < 4000; ++run) {
      std::vector<double> values(pairs);
      for (double& value : values) value = draw(random);
      const Spread spread = spread_of(values);
      right += spread.low <= 1 && 1 <= spread.high ? 1 : 0;
    }
    EXPECT_GE(right, 3760) << pairs;
    EXPECT_LE(right, 3920) << pairs << ": the interval is wider than it need be";
  }
}

TEST(BenchFigures, HaveAllWarnings) {
  BenchRecord record;
  record.result.disturbed = 0.02;
  record.result.report.warnings = {"oversubscribed: 6 workers on 2 processors"};
  EXPECT_EQ(figures_of(record).json().at("warnings"), Json(record.result.report.warnings));
  record.settings.warnings = {"train.json: tuned on another machine"};
  record.result.disturbed = 0.25;
  const Json warnings = figures_of(record).json().at("warnings");
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_EQ(warnings[0], "train.json: tuned on another machine");
  EXPECT_THAT(warnings[2].get<std::string>(), HasSubstr("other programs took 25% of the proc"));
}

TEST(ProcessorTimes, TellWhatOthersTook) {
  const double second = ticks_per_second();
  const ProcessorTimes before{.process_seconds = 1, .machine_ticks = second};
  const auto others = [&](double process_seconds, double unused_seconds, double seconds = 4) {
    return taken_by_others(before, {.process_seconds = 1 + process_seconds,
                                    .machine_ticks = second * (1 + seconds),
                                    .unused_ticks = second * unused_seconds});
  };
  EXPECT_NEAR(others(3, 0), 0.25, 1e-9);
  EXPECT_NEAR(others(4, 0), 0, 1e-9);
  EXPECT_EQ(others(2, 1), 0) << "there was enough left";
  EXPECT_EQ(others(0.2, 0, 0.5), 0) << "ticks are too coarse";
}

TEST(BenchFigures, NameTheStep) {
  BenchRecord record;
  EXPECT_EQ(step_text(record), "none");
  record.settings.step = std::chrono::microseconds(1500);
  EXPECT_EQ(step_text(record), "1.500 ms");
  record.settings.gemm = 4096;
  record.result.device_step_ms = 0.25;
  EXPECT_EQ(step_text(record), "gemm:4096 (0.250 ms)");
}

}  // namespace
}  // namespace millrace::cli
