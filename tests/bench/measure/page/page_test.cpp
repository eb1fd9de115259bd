// SPDX-License-Identifier: Apache-2.0
#include "measure/page/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure/page/made_up_run.h"
#include "measure/bench/bench_output.h"
#include "measure/page/timeline.h"
#include "measure/text/figures.h"
#include "support/well_formed.h"

namespace millrace {
namespace {

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

/// The data of the only chart of this kind on a page.
nlohmann::json chart_of(const std::string& html, const std::string& kind) {
  const std::string opening = "data-kind=\"" + kind + "\"><script type=\"application/json\">";
  const std::size_t begin = html.find(opening);
  if (begin == std::string::npos) throw std::runtime_error("no chart " + kind);
  const std::size_t data = begin + opening.size();
  return nlohmann::json::parse(html.substr(data, html.find("</script>", data) - data));
}

/// Expects a page that a browser shows without loading anything.
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

TEST(BenchPage, BytesThatAreNotUtf8AreShownEscaped) {
  EXPECT_EQ(cli::escape("caf\xc3\xa9 caf\xe9 <\xe2\x82"), "caf\xc3\xa9 caf\\xe9 &lt;\\xe2\\x82");
}

TEST(BenchPage, HasTheVerdictAndItsNumbers) {
  const MadeUpRun run({});
  const std::string html = cli::to_html(run.record(), run.trace());
  expect_sound(html);
  const Report& report = run.record().result.report;
  const std::string verdict = run.record().result.verdict.text;
  EXPECT_EQ(verdict.front(), 'd');
  EXPECT_THAT(html, HasSubstr("<h1>D" + verdict.substr(1) + "</h1>")) << "with a capital";
  EXPECT_THAT(html, HasSubstr(run.record().result.verdict.advice));
  EXPECT_THAT(html, HasSubstr(fmt::format("<strong>{:.1f}</strong> samples/s",
                                          static_cast<double>(report.samples) / report.seconds)));
  EXPECT_THAT(html, HasSubstr(fmt::format("<strong>{:.2f}%</strong>",
                                          100 * *run.record().result.device_idle)));
  EXPECT_THAT(html, HasSubstr("<strong>" + cli::duration_text(report.stall.p99_ms) + "</strong>"));
  EXPECT_THAT(html, HasSubstr("up to 1.12x"));
  for (const char* text :
       {"/data/imagenet/train-224.lmdb", "<th scope=\"row\">Batch size</th>", "34.000 ms",
        "AMD EPYC", "29f4295", "libjpeg-turbo", "device steps", "worker 5", "free slots",
        "ready batches", "84.5 MB", "&quot;output&quot;"})
    EXPECT_THAT(html, HasSubstr(text)) << text;
}

TEST(BenchPage, SaysInTablesWhatItsChartsShow) {
  const MadeUpRun run({});
  const std::string html = cli::to_html(run.record(), run.trace());
  const auto bars = chart_of(html, "bars").at("rows");
  ASSERT_EQ(bars.size(), 6U);
  EXPECT_EQ(bars[1].at("name"), "decode");
  EXPECT_EQ(bars[5].at("name"), "device");
  EXPECT_DOUBLE_EQ(bars[5].at("waits_input").get<double>(), *run.record().result.device_idle);
  EXPECT_EQ(chart_of(html, "timeline").at("groups").size(), 2U);
  EXPECT_THAT(chart_of(html, "histogram").at("bins"), Not(::testing::IsEmpty()));
  EXPECT_EQ(count_of(html, "<details class=\"repeats\" open=\"open\">"), 3U)
      << "lanes, counters, waits";
  for (const char* text : {"<th scope=\"row\">worker 0: decode</th>", "<summary>Counters</summary>",
                           "<th scope=\"row\">decode</th>", "<summary>Waits in numbers</summary>"})
    EXPECT_THAT(html, HasSubstr(text)) << text;
}

TEST(BenchPage, HasTheSameRowsAsTheTable) {
  MadeUpRun run({.batches = 3});
  run.record().result.report.warnings = {"oversubscribed: 6 workers on 2 cores"};
  const std::string html = cli::to_html(run.record(), run.trace());
  const std::string text = cli::to_text(run.record());
  for (const auto& row : cli::figures_of(run.record()).rows()) {
    EXPECT_THAT(text, HasSubstr(row[0]));
    EXPECT_THAT(html, HasSubstr("<th scope=\"row\">" + cli::escape(row[0]) + "</th><td>" +
                                cli::escape(row[1]) + "</td>"));
  }
  EXPECT_THAT(html, HasSubstr("<ul class=\"warnings\">\n<li>oversubscribed: 6 workers"));
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
  EXPECT_EQ(count_of(html, "<script type=\"application/json\">"), 2u) << "bars and timeline";
  EXPECT_EQ(count_of(html, "</script>"), 3u);
  EXPECT_GE(count_of(html, shown), 13u);
  // In the data of the charts the same text ends no element, and parsing restores it.
  EXPECT_EQ(chart_of(html, "bars").at("rows")[1].at("name"), attack);
  const auto drawn = chart_of(html, "timeline").at("groups")[0].at("lanes")[0];
  EXPECT_EQ(drawn.at("name"), attack);
  EXPECT_EQ(drawn.at("kinds")[0].at("name"), attack);
}

TEST(Page, TakesTextsThatAreNoUtf8IntoItsCharts) {
  const cli::Chart chart = cli::make_chart("bars", {{"rows", {{{"name", "caf\xE9"}}}}});
  EXPECT_EQ(chart.data, "{\"rows\":[{\"name\":\"caf\xEF\xBF\xBD\"}]}");
}

TEST(Page, HasWhatItIsGivenInThisOrder) {
  const std::string html = cli::page_html(
      {.title = "a title",
       .subject = "a subject",
       .verdict = "a < b",
       .advice = "an advice",
       .warnings = {"a warning"},
       .numbers = {{.name = "a name", .value = "1", .unit = "m", .detail = "a detail"}},
       .sections = {{.title = "a section",
                     .text = "how to read it",
                     .chart = cli::make_chart("bars", {{"rows", nlohmann::json::array()}}),
                     .tables = {{.title = "a repetition",
                                 .head = {"x", "y", "a note"},
                                 .rows = {{"1", "2", "three"}},
                                 .text_columns = 1,
                                 .repeats_chart = true},
                                {.title = "names and values", .rows = {{"name", "value"}}}},
                     .list = {"a sentence"},
                     .folded_title = "a fold",
                     .folded = "its text"}}});
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("<title>a title</title>"));
  std::size_t at = html.find("</head>");
  for (const char* text :
       {"a subject", "<h1>a &lt; b</h1>", "an advice", "a warning", "a name",
        "<strong>1</strong> m", "a detail", "<h2>a section</h2>", "how to read it",
        "data-kind=\"bars\"", "open=\"open\"><summary>a repetition",
        "<th scope=\"col\" class=\"text\">a note</th>", "<td>2</td>",
        "<td class=\"text\">three</td>", "<h3>names and values</h3>", "<li>a sentence</li>",
        "<summary>a fold</summary><pre>its text</pre>", "Written by"}) {
    const std::size_t next = html.find(text, at);
    EXPECT_NE(next, std::string::npos) << text;
    if (next != std::string::npos) at = next;
  }
  EXPECT_THAT(html, Not(HasSubstr("<!--"))) << "every mark of the template is filled";
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
                    .waiting_output_seconds = 2,
                    .occupancy = 0.5}};
  const cli::Section section = cli::stage_section(report, 0.25);
  EXPECT_EQ(section.chart.value().kind, "bars");
  EXPECT_EQ(nlohmann::json::parse(section.chart->data), nlohmann::json::parse(R"({"rows": [
              {"name": "decode", "note": "4 workers",
               "busy": 0.5, "waits_input": 0.1, "waits_output": 0.05},
              {"name": "device", "note": "",
               "busy": 0.75, "waits_input": 0.25, "waits_output": 0}]})"));
  EXPECT_THAT(section.tables.at(0).head,
              ::testing::ElementsAre("stage", "lanes", "busy", "waits for input", "for output",
                                     "count", "p50", "p95", "p99", "max ms"));
  EXPECT_THAT(section.tables.at(0).rows.at(0),
              ::testing::ElementsAre("decode", "4.0", "50.0%", "10.0%", "5.0%", "0", "0.000",
                                     "0.000", "0.000", "0.000"));
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
  const cli::Section stalls = cli::stall_section(picture, report);
  EXPECT_EQ(stalls.text, "4 of 10 calls waited, 22.1 ms in all: 2.2% of the time.");
  const auto data = nlohmann::json::parse(stalls.chart.value().data);
  ASSERT_EQ(data.at("bins").size(), 3u);
  EXPECT_EQ(data["bins"][1][3], "2 waits of 1.00 ms to 1.26 ms");
  EXPECT_EQ(data["bins"][2][3], "1 wait of 20.0 ms to 25.1 ms");
  EXPECT_NEAR(data["bins"][2][0].get<double>(), 19.95, 0.01);
  EXPECT_EQ(data["bins"][2][2], 1);
  EXPECT_NEAR(data["bins"][1][4].get<double>(), 2.1, 1e-9) << "as high as what it adds up to";
  ASSERT_EQ(data.at("marks").size(), 2u) << "p50 is below all waits";
  EXPECT_EQ(data["marks"][0][1], "p95 of all calls: 1.10 ms");
  EXPECT_THAT(stalls.tables.at(0).rows.at(1), ::testing::ElementsAre("1.00 ms to 1.26 ms", "2"));
}

TEST(StallHistogram, CountsACallOnceThatWasAheadInBetween) {
  cli::TracePicture picture{.groups = {"millrace"}};
  const auto span = [](const char* name, std::int64_t begin_ms, std::int64_t end_ms) {
    return TraceSpan{.name = name, .begin_ns = begin_ms * 1'000'000, .end_ns = end_ms * 1'000'000};
  };
  picture.lanes = {{0,
                    "trainer",
                    {span("ahead", 0, 1), span("stall", 1, 5), span("ahead", 5, 6),
                     span("stall", 6, 12), span("ahead", 20, 30), span("stall", 30, 40)},
                    {}}};
  Report report;
  report.seconds = 0.1;
  report.stall.count = 2;
  EXPECT_EQ(cli::stall_section(picture, report).text,
            "2 of 2 calls waited, 20.0 ms in all: 20.0% of the time.");
}

TEST(StallHistogram, DrawsNothingWhereNextToNothingWasWaited) {
  cli::TracePicture picture{.groups = {"millrace"}};
  picture.lanes = {{0, "trainer", {{.name = "stall", .begin_ns = 0, .end_ns = 13'000}}, {}}};
  Report report;
  report.seconds = 1;
  report.stall.count = 200;
  const cli::Section stalls = cli::stall_section(picture, report);
  EXPECT_EQ(stalls.text, "1 of 200 calls waited, 13 µs in all: 0.0% of the time.");
  EXPECT_FALSE(stalls.chart.has_value());
  EXPECT_TRUE(stalls.tables.empty());
}

TEST(Page, GivesEachKindOfWorkAColourOfItsOwn) {
  const std::string html = cli::page_html({});
  for (const char* name : {"read", "decode", "augment", "upload", "copy", "convert"})
    EXPECT_EQ(count_of(html, fmt::format("  {0}: [\"kind-{0}\", ", name)), 1U) << name;
  // Only lost time is red.
  EXPECT_EQ(count_of(html, "var(--lost)"), 2U);
  EXPECT_EQ(count_of(html, "url(#lost)"), 1U);
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
