// SPDX-License-Identifier: Apache-2.0
#include "measure/bench_rows.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace millrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names_of(const BenchRecord& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : device_rows(record)) names.push_back(name);
  return names;
}

TEST(BenchRows, SayOnlyWhatWasMeasured) {
  BenchRecord record;
  EXPECT_THAT(names_of(record), ElementsAre("trainer's thread", "memory since warm-up"));
  EXPECT_THAT(device_rows(record)[1].second, Not(HasSubstr("device")));
  record.result.copies = CopyRate{1e6, 20e9};
  EXPECT_THAT(device_rows(record)[0].second, Not(HasSubstr("plain")));
}

TEST(BenchRows, TellCopiesBesidePlainOnesAndWhatPartsSave) {
  BenchRecord record;
  record.result.copies = CopyRate{1e6, 20e9};
  record.result.copy_hidden = 0.975;
  record.result.device_memory_growth = 2'500'000;
  record.result.rss_growth = -1'000'000;
  record.beside = {.idle_by_synthetic = 0.0125,
                   .plain_copy_bytes_per_second = 25e9,
                   .first_step = FirstStep{12, 30.5}};
  EXPECT_DOUBLE_EQ(copies_of_plain(record).value(), 0.8);
  const auto rows = device_rows(record);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_THAT(rows[0].second, HasSubstr("1.25%"));
  EXPECT_EQ(rows[1].second,
            "20.00 GB/s, 80.0% of plain copies' 25.00 GB/s; 97.5% of their time under steps");
  EXPECT_THAT(rows[3].second, HasSubstr("18.5 ms saved"));
  EXPECT_EQ(rows[4].second, "-1.0 MB of the process, +2.5 MB of the device");
}

TEST(BenchRows, NameTheStep) {
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
