// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/report.h>

#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using Json = nlohmann::json;

Json json_of(const Report& report) { return Json::parse(to_json(report)); }

TEST(ReportJson, HasEachMemberUnderItsName) {
  Report report;
  report.pipeline = "train";
  report.transform = R"({"output":[8,8]})";
  report.seconds = 2.5;
  report.batches = 3;
  report.samples = 191;
  report.samples_made = 200;
  report.encoded_bytes = 1ULL << 60U;
  report.decoders = {{"own", 150}, {"libjpeg-turbo", 50}};
  report.decoder_seconds = {{"own", 1.5}, {"libjpeg-turbo", 2.5}};
  report.copied_bytes = 77;
  report.stall = {3, 12, 4, 5, 6, 7};
  report.ahead = {1, 0.5, 0.5, 0.5, 0.5, 0.5};
  report.stages = {{"decode", 2, 1.5, 0.25, 0.125, 0.3, 0.9, {200, 1500, 7, 8, 9, 10}}};
  report.worker_delay = 0.01;
  report.nodes = {{1, 2, true, 3, 150, 50, false}};
  report.warnings = {"a", "b"};
  report.bad_records = 2;
  report.bad_record_list = {{17, "cat\xff.jpg", "cut short"}};
  report.memory = {1000, 200, 100, 30, 40, 50, 60, 70, 80};
  report.cache = {120, 80, 1.5, {30, 2.5}, {20, 3.5}, {10, 4.5}};
  report.verdict = {Bound::transform, "decode", 0.9, 1.75, "step", "decode bounds it", "do this"};
  const Json json = json_of(report);
  EXPECT_EQ(json["pipeline"], "train");
  EXPECT_EQ(json["transform"], R"({"output":[8,8]})");
  EXPECT_EQ(json["seconds"], 2.5);
  EXPECT_EQ(json["samples"], 191);
  EXPECT_EQ(json["encoded_bytes"], 1ULL << 60U);
  EXPECT_EQ(json["ways"], (Json{{"own", 150}, {"libjpeg-turbo", 50}}));
  EXPECT_EQ(json["way_seconds"], (Json{{"own", 1.5}, {"libjpeg-turbo", 2.5}}));
  EXPECT_EQ(json["stall"], (Json{{"count", 3},
                                 {"total_ms", 12},
                                 {"p50_ms", 4},
                                 {"p95_ms", 5},
                                 {"p99_ms", 6},
                                 {"max_ms", 7}}));
  EXPECT_EQ(json["ahead"]["count"], 1);
  EXPECT_EQ(json["stages"][0]["name"], "decode");
  EXPECT_EQ(json["stages"][0]["waiting_output_seconds"], 0.125);
  EXPECT_EQ(json["stages"][0]["each"]["max_ms"], 10);
  EXPECT_EQ(json["worker_delay"], 0.01);
  EXPECT_EQ(json["nodes"][0]["samples_by_helpers"], 50);
  EXPECT_EQ(json["nodes"][0]["memory_on_node"], false);
  EXPECT_EQ(json["warnings"], Json::array({"a", "b"}));
  // Keys need not be UTF-8.
  EXPECT_EQ(json["bad_record_list"][0]["key"], "cat\ufffd.jpg");
  EXPECT_EQ(json["bad_record_list"][0]["index"], 17);
  EXPECT_EQ(json["memory"]["index_bytes"], 30);
  EXPECT_EQ(json["memory"]["cache_bytes"], 40);
  EXPECT_EQ(json["memory"]["kept_host_bytes"], 50);
  EXPECT_EQ(json["memory"]["scratch_limit_bytes"], 60);
  EXPECT_EQ(json["memory"]["index_limit_bytes"], 70);
  EXPECT_EQ(json["memory"]["cache_limit_bytes"], 80);
  EXPECT_EQ(json["cache"], (Json{{"hits", 120},
                                 {"misses", 80},
                                 {"hit_seconds", 1.5},
                                 {"recoded", {{"samples", 30}, {"seconds", 2.5}}},
                                 {"hinted", {{"samples", 20}, {"seconds", 3.5}}},
                                 {"plain", {{"samples", 10}, {"seconds", 4.5}}}}));
  EXPECT_EQ(json["verdict"]["bound"], "transform");
  EXPECT_EQ(json["verdict"]["speedup_limit"], 1.75);
}

TEST(ReportJson, WhatIsNotKnownIsNull) {
  Report report;
  report.nodes = {{}};
  const Json json = json_of(report);
  EXPECT_TRUE(json["worker_delay"].is_null());
  EXPECT_TRUE(json["nodes"][0]["memory_on_node"].is_null());
  EXPECT_EQ(json["stages"], Json::array());
  EXPECT_EQ(json["ways"], Json::object());
  EXPECT_EQ(json["warnings"], Json::array());
}

}  // namespace
}  // namespace millrace
