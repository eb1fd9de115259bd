// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "measure/tune/tune_output.h"
#include "measure/tune/tune_text.h"
#include "support/well_formed.h"

namespace millrace::cli {
namespace {

using testing::fault_in_markup;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

TunePoint point_of(unsigned workers, Mean rate, std::size_t runs, Feeds feeds) {
  TunePoint point{.setting = {.workers = workers}, .feeds = feeds};
  point.summary.samples_per_second = rate;
  point.summary.runs = runs;
  return point;
}

TuneResult made_up_tune() {
  TuneResult result;
  result.dataset = "train<1>.lmdb";
  result.recipe_name = "train";
  result.goal = {.step_ms = 64e3 / 941, .max_workers = 16};
  result.machine.cpu = "a fast one";
  TuneFindings& findings = result.findings;
  findings.chosen = {.workers = 6};
  findings.chosen_point = 1;
  findings.points = {point_of(1, {187.25, 2.5}, 3, Feeds::no),
                     point_of(6, {941.5, 0}, 1, Feeds::yes),
                     point_of(16, {1850, 64}, 3, Feeds::unsure)};
  findings.points[1].summary.device_idle = Mean{0.001, 0.0002};
  findings.points[1].summary.idle_high = 0.0015;
  findings.phases = {{.variable = TuneVariable::workers,
                      .points = {0, 1, 2},
                      .chosen = 1,
                      .why = "5 leave the device idle 9.1% of the time."},
                     {.variable = TuneVariable::prefetch,
                      .points = {1},
                      .chosen = 1,
                      .why = "4 is the smallest with no loss."}};
  findings.fit = {
      .lambda = 189.25, .sigma = 0.021, .kappa = 0.0021, .parameters = 3, .r_squared = 0.998};
  findings.verdict = "6 workers feed a step of 68 ms.";
  findings.not_measured = {"batch_size: the time was over."};
  return result;
}

Json chart_in(const std::string& html) {
  const std::string begin = "data-kind=\"lines\"><script type=\"application/json\">";
  const std::size_t at = html.find(begin);
  if (at == std::string::npos) return {};
  const std::string rest = html.substr(at + begin.size());
  return Json::parse(rest.substr(0, rest.find("</script>")));
}

const Json* series_of(const Json& chart, const std::string& style) {
  for (const Json& series : chart.at("series"))
    if (series.at("style") == style) return &series;
  return nullptr;
}

TEST(TunePage, HasTheSweepTheLawAndTheChoice) {
  const std::string html = page_html(page_of(made_up_tune()));
  EXPECT_EQ(fault_in_markup(html), "");
  for (const char* text :
       {"<h1>6 workers feed a step of 68 ms.</h1>", "millrace tune of train&lt;1&gt;.lmdb",
        "189.2 samples/s for one worker, contention 0.0210 and coherency 0.002100 (R² 0.998)",
        "highest with 22 workers", "5 leave the device idle", "6 (chosen)", "187 ± 2",
        "4 is the smallest", "batch_size: the time was over.", "a fast one", "100 s",
        "at most 0.15% with 95% confidence"})
    EXPECT_THAT(html, HasSubstr(text)) << text;

  const Json chart = chart_in(html);
  const Json* points = series_of(chart, "points");
  ASSERT_NE(points, nullptr);
  EXPECT_EQ(points->at("points"), Json({{1, 187.25}, {6, 941.5}, {16, 1850.0}}));
  EXPECT_EQ(points->at("error"), Json({2.5, 0.0, 64.0}));
  EXPECT_EQ(points->at("texts").at(0), "1 worker: 187.2 ± 2.5 samples/s, 3 runs; feeds: no");
  EXPECT_EQ(points->at("chosen"), 1);
  EXPECT_EQ(points->at("label"), "chosen: 6 workers");
  const Json* fit = series_of(chart, "fit");
  ASSERT_NE(fit, nullptr);
  EXPECT_NEAR(fit->at("points").back().at(0).get<double>(), 16.96, 1e-9);
  EXPECT_NEAR(fit->at("points").back().at(1).get<double>(), made_up_tune().findings.fit.rate(16.96),
              1e-6);
  EXPECT_NE(series_of(chart, "reference"), nullptr);
  const Json* needed = series_of(chart, "needed");
  ASSERT_NE(needed, nullptr);
  EXPECT_NEAR(needed->at("points").at(0).at(1).get<double>(), 941, 1e-9);
}

TEST(TunePage, HasTheWarningsThatTextAndFileHave) {
  TuneResult tune = made_up_tune();
  tune.recipe = "{}";
  tune.findings.points[0].summary.disturbed = 1;
  tune.findings.points[0].runs = {{.disturbed = 0.25}};
  tune.findings.points[1].runs = {{.warnings = {"oversubscribed: 6 workers on 2 processors"}}};
  say_why(tune.goal, tune.findings);
  const std::string html = page_html(page_of(tune));
  const std::string text = to_text(tune);
  const Json json = Json::parse(to_json(tune));
  ASSERT_EQ(json.at("warnings").size(), 2U);
  EXPECT_THAT(json.at("warnings")[1].get<std::string>(),
              HasSubstr("In 1 of 2 runs other programs"));
  for (const Json& warning : json.at("warnings")) {
    EXPECT_THAT(html, HasSubstr("<li>" + warning.get<std::string>() + "</li>"));
    EXPECT_THAT(text, HasSubstr("warning: " + warning.get<std::string>()));
  }
}

TEST(TunePage, NeedsNoLawNoStepAndNoSecondPoint) {
  TuneResult tune = made_up_tune();
  tune.findings.fit = {};
  tune.goal.step_ms = 0;
  tune.findings.chosen.workers = 1;
  tune.findings.phases[0].points = {0};
  tune.findings.points[0].summary = {};
  const std::string html = page_html(page_of(tune));
  EXPECT_EQ(fault_in_markup(html), "");
  EXPECT_THAT(html, HasSubstr("Too few worker counts"));
  const Json chart = chart_in(html);
  EXPECT_EQ(chart.at("series").size(), 1u);
  EXPECT_EQ(chart.at("series").at(0).at("points"), Json::array({Json({1, 0.0})}));
}

TEST(TunePage, DrawsNoLawThatDoesNotHoldAndNoneBelowOneWorker) {
  TuneResult tune = made_up_tune();
  const Json law = chart_in(page_html(page_of(tune)));
  EXPECT_EQ(series_of(law, "fit")->at("points").front().at(0), 1.0);
  EXPECT_TRUE(law.at("whole_x"));

  tune.findings.fit.r_squared = 0.79;
  const std::string html = page_html(page_of(tune));
  EXPECT_EQ(series_of(chart_in(html), "fit"), nullptr);
  EXPECT_THAT(html, HasSubstr("The rates do not follow"));
  tune.findings.fit.r_squared = 0.99;
  tune.findings.fit.parameters = 2;
  EXPECT_EQ(series_of(chart_in(page_html(page_of(tune))), "fit"), nullptr);
}

TEST(TunePage, BeginsWithTheWarnings) {
  TuneResult tune = made_up_tune();
  tune.findings.warnings = {"Nothing feeds <it>."};
  const std::string html = page_html(page_of(tune));
  EXPECT_LT(html.find("Nothing feeds &lt;it&gt;."), html.find("Throughput over workers"));
}

TEST(TunePage, KeepsItsScaleWhereTheStepTakesFarMore) {
  TuneResult tune = made_up_tune();
  tune.goal.step_ms = 0.64;
  const Json chart = chart_in(page_html(page_of(tune)));
  const Json* needed = series_of(chart, "needed");
  ASSERT_NE(needed, nullptr);
  EXPECT_EQ(needed->at("points").size(), 0u);
  EXPECT_THAT(needed->at("name").get<std::string>(), HasSubstr("100000 samples/s, off the scale"));
}

}  // namespace
}  // namespace millrace::cli
