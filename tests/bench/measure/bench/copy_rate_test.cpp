// SPDX-License-Identifier: Apache-2.0
#include "measure/device/copy_rate.h"

#include <gmock/gmock.h>
#include <millrace/host_device.h>

#include <chrono>
#include <optional>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::Optional;

TEST(CopyRate, IsBytesOverTheTimeOfCopies) {
  Report report;
  report.copied_bytes = 4000;  // of 4 copies, of which 3 have ended
  report.stages = {{.name = "read", .busy_seconds = 7},
                   {.name = "copy", .busy_seconds = 0.5, .each = {.count = 3}}};
  const auto rate = copy_rate(report, 4);
  ASSERT_TRUE(rate);
  EXPECT_DOUBLE_EQ(rate->bytes, 1000);
  EXPECT_DOUBLE_EQ(rate->bytes_per_second, 6000);
}

TEST(CopyRate, IsUnknownWhereNothingWasCopiedOrTimed) {
  Report report;
  EXPECT_FALSE(copy_rate(report, 1));
  report.stages = {{.name = "copy"}};
  EXPECT_FALSE(copy_rate(report, 1));
  report.stages[0].busy_seconds = 1;
  EXPECT_FALSE(copy_rate(report, 1));  // a copy that ended in the report's time and began before it
  report.copied_bytes = 1000;
  EXPECT_FALSE(copy_rate(report, 0));
  EXPECT_TRUE(copy_rate(report, 1));
}

// The rate must not exceed the bus of 1 GB/s; a busy machine may stay far below.
TEST(CopyRate, OfPlainCopiesIsThatOfTheBus) {
  HostDevice device({.copies = true, .copy_bytes_per_second = 1e9});
  const Memory source = device.allocate_host(plain_copy_memory(100'000, 3), {});
  const auto rates = plain_copy_rates(device, source, 100'000);
  ASSERT_TRUE(rates);
  for (const double rate : {rates->at_once, rates->paced}) {
    EXPECT_GT(rate, 0);
    EXPECT_LE(rate, 1.001e9);
  }
}

TEST(CopyRate, TakesSpansByLaneAndName) {
  Trace trace({.lanes = {"copies"}});
  const auto start = Trace::Clock::now();
  const std::size_t group = trace.add_group("a pipeline");
  Trace::Lane& copies = trace.add_lane(group, "copies");
  copies.add("copy", start, start + 1ms, 7);
  copies.add("other", start, start + 1ms);
  Trace::Lane& unwanted = trace.add_lane(group, "worker 0");
  unwanted.add("copy", start, start + 1ms);
  unwanted.set(start, 3);
  const auto spans = spans_of(trace, "copies", "copy");
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].batch, 7U);
  EXPECT_TRUE(spans_of(trace, "worker 0", "copy").empty()) << "the trace was not to keep it";
  EXPECT_TRUE(trace.lanes()[1].values.empty());
  EXPECT_EQ(trace.dropped(), 0U);
}

}  // namespace
}  // namespace millrace::cli
