// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/page/made_up_run.h"
#include "measure/bench_page.h"
#include "page/stage_bars.h"
#include "page/stall_histogram.h"
#include "page/svg_chart.h"
#include "support/well_formed.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// A page that a browser shows without asking anyone for anything.
void expect_sound(const std::string& html) {
  EXPECT_EQ(fault_in_markup(html), "");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* reference : {"http:", "https:", "src=", "href=", "@import", "<link", "<iframe"})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  EXPECT_EQ(count_of(html, "url("), count_of(html, "url(#"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const char* name : {"nan", "inf%", "-0<"}) EXPECT_THAT(html, Not(HasSubstr(name)));
}

TEST(MarkupCheck, FindsWhatIsWrong) {
  EXPECT_EQ(fault_in_markup("<a b=\"1 > 0\"><c/>x &lt; y</a>"), "");
  for (const char* wrong : {"<a>", "</a>", "<a><b></a></b>", "<a b=1></a>", "<a>1 & 2</a>",
                            "<a>1 > 2</a>", "<a <b></a>"})
    EXPECT_NE(fault_in_markup(wrong), "") << wrong;
}

TEST(BenchPage, HasTheVerdictAndItsNumbers) {
  const MadeUpRun run({});
  const std::string html = cli::to_html(run.record(), run.trace());
  expect_sound(html);
  const Report& report = run.record().result.report;
  EXPECT_THAT(html, HasSubstr("<h1>" + run.record().result.verdict.text + "</h1>"));
  EXPECT_THAT(html, HasSubstr(run.record().result.verdict.advice));
  EXPECT_THAT(html, HasSubstr(fmt::format("<strong>{:.1f}</strong> samples/s",
                                          static_cast<double>(report.samples) / report.seconds)));
  EXPECT_THAT(html, HasSubstr(fmt::format("<strong>{:.2f}%</strong>",
                                          100 * *run.record().result.device_idle)));
  EXPECT_THAT(html, HasSubstr("<strong>" + cli::duration_text(report.stall.p99_ms) + "</strong>"));
  EXPECT_THAT(html, HasSubstr("up to 1.12x"));
  for (const char* text : {"/data/imagenet/train-224.lmdb", "32 samples in 1 part", "34.000 ms",
                           "AMD EPYC", "29f4295", "libjpeg-turbo", "device steps", "worker 5",
                           "free slots", "ready batches", "84.5 MB", "&quot;output&quot;"})
    EXPECT_THAT(html, HasSubstr(text)) << text;
}

TEST(BenchPage, IsReadableWithoutAStepATraceOrStages) {
  MadeUpRun run({.batches = 3});
  run.record().result.device_idle.reset();
  run.record().settings.step = {};
  run.record().result.report.stages.clear();
  run.record().result.report.seconds = 0;
  run.record().result.report.samples_made = 0;
  const Trace nothing;
  const std::string html = cli::to_html(run.record(), nothing);
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("no step to be idle for"));
  EXPECT_THAT(html, HasSubstr("The trace holds nothing."));
  EXPECT_THAT(html, HasSubstr("The trace holds no wait for data; by the report, the longest of 3 "
                              "batches was waited for " +
                              cli::duration_text(run.record().result.report.stall.max_ms)));
}

TEST(BenchPage, ShowsTextsAsTheyAre) {
  const std::string attack = "</script><script>alert(\"1\" & '2')</script>\x01";
  const std::string shown =
      "&lt;/script&gt;&lt;script&gt;alert(&quot;1&quot; &amp; "
      "&#39;2&#39;)&lt;/script&gt;\xEF\xBF\xBD";
  MadeUpRun run({.batches = 2});
  run.record().dataset = "/data/" + attack + ".lmdb";
  run.record().recipe_name = attack;
  run.record().machine.cpu = attack;
  run.record().result.verdict.text = attack;
  run.record().result.verdict.advice = attack;
  run.record().result.report.bad_records = 1;
  run.record().result.report.bad_record_list = {{7, attack, attack}};
  run.record().result.report.stages[1].name = attack;
  Trace trace;
  Trace::Lane& lane = trace.add_lane(trace.add_group(attack), attack);
  lane.add(trace.keep(attack), Trace::Clock::now(), Trace::Clock::now() + std::chrono::seconds(1));
  const std::string html = cli::to_html(run.record(), trace);
  expect_sound(html);
  EXPECT_EQ(count_of(html, "<script>"), 1u);
  EXPECT_EQ(count_of(html, "</script>"), 1u);
  EXPECT_GE(count_of(html, shown), 14u);
}

TEST(BenchPage, IsBoundedHoweverMuchWasTraced) {
  const MadeUpRun run({.batches = 2});
  Trace trace;
  const std::size_t group = trace.add_group("millrace");
  const auto start = Trace::Clock::now();
  constexpr int lanes = 100;
  constexpr int spans = 10'000;
  for (int worker = 0; worker < lanes; ++worker) {
    Trace::Lane& lane = trace.add_lane(group, "worker " + std::to_string(worker));
    for (int span = 0; span < spans; ++span) {
      const auto begin = start + std::chrono::microseconds(100 * span);
      lane.add("decode", begin, begin + std::chrono::microseconds(90),
               static_cast<std::uint64_t>(span),
               static_cast<std::uint64_t>(span) * 2654435761 % 1'000'000);
    }
  }
  const std::string html = cli::to_html(run.record(), trace);
  expect_sound(html);
  EXPECT_LT(html.size(), 2'000'000u);
  EXPECT_GT(html.size(), 200'000u);
  EXPECT_THAT(html, HasSubstr("of 1000000 spans"));
  EXPECT_THAT(html, HasSubstr("52 further workers are not drawn."));
}

TEST(StageBars, AreAsLongAsTheStagesTimes) {
  Report report;
  report.seconds = 10;
  report.stages = {{.name = "decode",
                    .lanes = 4,
                    .busy_seconds = 20,
                    .waiting_input_seconds = 4,
                    .waiting_output_seconds = 2}};
  const std::string html = cli::draw_stages(report, 0.25);
  EXPECT_EQ(fault_in_markup(html), "");
  EXPECT_THAT(html, HasSubstr("class=\"kind-decode\" x=\"0.000%\" width=\"50.000%\""));
  EXPECT_THAT(html, HasSubstr("class=\"waits-input\" x=\"50.000%\" width=\"10.000%\""));
  EXPECT_THAT(html, HasSubstr("class=\"waits-output\" x=\"60.000%\" width=\"5.000%\""));
  EXPECT_THAT(html, HasSubstr("class=\"starves\" x=\"75.000%\" width=\"25.000%\""));
  EXPECT_THAT(html, HasSubstr("<span>4 workers</span>"));
}

TEST(StallHistogram, CountsEveryStallOfTheTrainer) {
  cli::TracePicture picture{.groups = {"millrace"}};
  const auto stall = [](std::int64_t ns) {
    return TraceSpan{.name = "stall", .begin_ns = 0, .end_ns = ns};
  };
  picture.lanes = {
      {0, "trainer", {stall(1'000'000), stall(1'100'000), stall(20'000'000), stall(10)}, {}},
      {0, "another", {stall(5'000'000)}, {}}};
  picture.lanes[0].spans.push_back({.name = "ahead", .begin_ns = 0, .end_ns = 5'000'000});
  Report report;
  report.seconds = 1;
  report.batches = 10;
  report.stall = {.count = 10, .p50_ms = 0, .p95_ms = 1.1, .p99_ms = 20, .max_ms = 20};
  const cli::StallPicture stalls = cli::draw_stalls(picture, report);
  EXPECT_EQ(fault_in_markup(stalls.html), "");
  EXPECT_EQ(stalls.text, "4 waits for 10 batches, 22.1 ms in all: 2.2% of the time.");
  EXPECT_EQ(count_of(stalls.html, "<rect"), 3u);
  EXPECT_THAT(stalls.html, HasSubstr("2 waits of 1.00 ms to 1.26 ms"));
  EXPECT_THAT(stalls.html, HasSubstr("1 wait of 20.0 ms to 25.1 ms"));
  EXPECT_THAT(stalls.html, AllOf(HasSubstr("p95 of all calls: 1.10 ms"), Not(HasSubstr("p50"))));
}

TEST(ChartAxis, HasRoundMarks) {
  EXPECT_THAT(cli::round_marks(0, 100, 5), ::testing::ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(cli::round_marks(1.43, 4.4, 6), ::testing::ElementsAre(1.5, 2, 2.5, 3, 3.5, 4));
  const cli::ChartAxis axis = cli::linear_axis("x", 0, 0.3, 3);
  ASSERT_EQ(axis.ticks.size(), 4u);
  EXPECT_EQ(axis.ticks[0].label, "0.0");
  EXPECT_EQ(axis.ticks[3].label, "0.3");
  EXPECT_DOUBLE_EQ(cli::ChartAxis({.low = 1, .high = 100, .logarithmic = true}).at(10), 0.5);
}

TEST(DurationText, HasTheUnitThatFits) {
  for (const auto& [milliseconds, text] :
       std::vector<std::pair<double, std::string>>{{0, "0"},
                                                   {0.0042, "4.2 µs"},
                                                   {0.4116, "412 µs"},
                                                   {0.9999, "1.00 ms"},
                                                   {12.34, "12.3 ms"},
                                                   {999.9, "1.00 s"},
                                                   {4321, "4.32 s"}})
    EXPECT_EQ(cli::duration_text(milliseconds), text);
}

}  // namespace
}  // namespace millrace
