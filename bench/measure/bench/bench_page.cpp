// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "measure/bench/bench_output.h"
#include "measure/page/timeline.h"
#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<KeyNumber> key_numbers(const BenchRecord& record, const Figures& figures) {
  const Report& report = record.result.report;
  const double active = report.active_workers > 0 ? report.active_workers : report.workers;
  const bool all_active = active > report.workers - 0.05;
  const Verdict& verdict = record.result.verdict;
  std::vector<KeyNumber> numbers = {
      {.name = "Throughput",
       .value = figures.text("samples_per_second"),
       .unit = "samples/s",
       .detail = fmt::format("{} batches of {} per second", figures.text("batches_per_second"),
                             record.settings.pipeline.batch_size)},
      {.name = "Device idle",
       .value = record.result.device_idle ? fmt::format("{:.2f}%", 100 * *record.result.device_idle)
                                          : "–",
       .detail = record.result.device_idle ? "between steps of " + step_text(record)
                                           : "no step to be idle for"},
      {.name = "Stall, p99",
       .value = duration_text(report.stall.p99_ms),
       .detail = fmt::format("p50 {}, longest {}", duration_text(report.stall.p50_ms),
                             duration_text(report.stall.max_ms))},
      {.name = "Workers",
       .value = all_active ? fmt::format("{}", report.workers)
                           : fmt::format("{:.1f} of {}", active, report.workers),
       .detail = fmt::format("{} busy{}", percent_text(report.worker_utilization),
                             report.cores > 0 ? ", " + count_text(report.cores, "core") : "")}};
  if (verdict.speedup_limit > 1.005)
    numbers.push_back({.name = "More workers give",
                       .value = fmt::format("up to {:.2f}x", verdict.speedup_limit),
                       .detail = verdict.next_bound.empty()
                                     ? "on cores of their own"
                                     : "then bound by " + verdict.next_bound});
  return numbers;
}

Section bad_records(const Report& report) {
  Table table{.head = {"Record", "Key", "What is wrong"}, .text_columns = 2};
  for (const millrace::BadRecord& record : report.bad_record_list)
    table.rows.push_back({fmt::format("{}", record.index), record.key, record.reason});
  return {
      .title = "Bad records",
      .text = fmt::format("The first {} of {}.", report.bad_record_list.size(), report.bad_records),
      .tables = {std::move(table)}};
}

Section circumstances(const BenchRecord& record) {
  Table machine{.title = "Machine", .rows = fact_rows(record.machine)};
  machine.rows.push_back({"Time given to other machines", percent_text(record.result.steal)});
  return {.title = "Settings and machine",
          .tables = {{.title = "Settings", .rows = options_of(record).rows()}, std::move(machine)},
          .folded_title = "The recipe as a program",
          .folded = record.settings.recipe};
}

/// Returns the time that each call of `next` waited for data, in milliseconds. Shorter waits count
/// as a microsecond. A call may have two "stall" spans with an "ahead" span between them.
std::vector<double> stalls_ms(const TracePicture& picture) {
  std::vector<std::int64_t> stalls;
  for (const TraceLane& lane : picture.lanes) {
    if (lane.name != "trainer") continue;
    const TraceSpan* before = nullptr;
    bool in_call = false;
    for (const TraceSpan& span : lane.spans) {
      const bool goes_on = before != nullptr && span.begin_ns == before->end_ns;
      before = &span;
      const bool is_stall = std::string_view(span.name) == "stall" && span.end_ns > span.begin_ns;
      if (is_stall && goes_on && in_call)
        stalls.back() += span.end_ns - span.begin_ns;
      else if (is_stall)
        stalls.push_back(span.end_ns - span.begin_ns);
      in_call = is_stall || (goes_on && in_call);
    }
  }
  std::vector<double> waits;
  waits.reserve(stalls.size());
  for (const std::int64_t stall : stalls)
    waits.push_back(std::max(1e-3, static_cast<double>(stall) / 1e6));
  return waits;
}

}  // namespace

Section stage_section(const Report& report, std::optional<double> device_idle) {
  Table table{.title = "Stages in numbers, times in ms"};
  Json bars = Json::array();
  for (const StageReport& stage : report.stages) {
    std::vector<std::string> cells;
    table.head.clear();
    for (const auto& row : figures_of(stage, report).rows()) {
      table.head.push_back(row[0]);
      cells.push_back(row[1]);
    }
    table.rows.push_back(std::move(cells));
    const bool one_lane = stage.on_device || stage.name == "stream" || stage.name == "trainer";
    const double all = stage.lanes * report.seconds;
    const auto share = [&](double seconds) { return all > 0 ? seconds / all : 0; };
    bars.push_back({{"name", stage.name},
                    {"note", one_lane           ? ""
                             : stage.lanes == 1 ? "1 worker"
                                                : fmt::format("{:.3g} workers", stage.lanes)},
                    {"busy", all > 0 ? share(stage.busy_seconds) : stage.occupancy},
                    {"waits_input", share(stage.waiting_input_seconds)},
                    {"waits_output", share(stage.waiting_output_seconds)}});
  }
  if (device_idle)
    bars.push_back({{"name", "device"},
                    {"note", ""},
                    {"busy", 1 - *device_idle},
                    {"waits_input", *device_idle},
                    {"waits_output", 0}});
  return {.title = "Where each stage's time went",
          .text =
              "The stage that is busy nearly all the time bounds the run; those before it wait "
              "for room, those behind it for input.",
          .chart = make_chart("bars", {{"rows", bars}}),
          .tables = {std::move(table)}};
}

Section stall_section(const TracePicture& picture, const Report& report) {
  constexpr int bins_per_decade = 10;
  /// Stalls below this share of the time get no chart.
  constexpr double worth_a_chart = 0.001;
  Section section{.title = "How long the trainer waited for data"};
  const std::vector<double> stalls = stalls_ms(picture);
  // The report may have counted waits for which the trace had no room.
  if (stalls.empty()) {
    section.text = fmt::format(
        "The trace holds no wait for data; by the report, the longest of {} batches was waited for "
        "{}.",
        report.batches, report.stall.max_ms > 0 ? duration_text(report.stall.max_ms) : "0 ms");
    return section;
  }
  struct Bin {
    std::size_t count = 0;
    double total_ms = 0;
  };
  double total_ms = 0;
  std::map<int, Bin> bins_found;
  for (const double stall : stalls) {
    total_ms += stall;
    Bin& bin = bins_found[static_cast<int>(std::floor(bins_per_decade * std::log10(stall) + 1e-9))];
    ++bin.count;
    bin.total_ms += stall;
  }
  const double share = report.seconds > 0 ? total_ms / (1e3 * report.seconds) : 0;
  section.text = fmt::format("{} of {} calls waited, {} in all: {} of the time.", stalls.size(),
                             report.stall.count, duration_text(total_ms), percent_text(share));
  if (share < worth_a_chart) return section;

  Table table{.title = "Waits in numbers", .head = {"Time waited", "Waits"}, .repeats_chart = true};
  Json bins = Json::array();
  const auto edge = [&](int bin) {
    return std::pow(10.0, static_cast<double>(bin) / bins_per_decade);
  };
  for (const auto& [bin, found] : bins_found) {
    const std::string range =
        fmt::format("{} to {}", duration_text(edge(bin)), duration_text(edge(bin + 1)));
    bins.push_back({edge(bin), edge(bin + 1), found.count,
                    fmt::format("{} of {}", count_text(found.count, "wait"), range),
                    found.total_ms});
    table.rows.push_back({range, std::to_string(found.count)});
  }
  Json marks = Json::array();
  for (const auto& [name, value] :
       {std::pair("p50", report.stall.p50_ms), std::pair("p95", report.stall.p95_ms),
        std::pair("p99", report.stall.p99_ms)})
    if (value >= edge(bins_found.begin()->first))
      marks.push_back({value, fmt::format("{} of all calls: {}", name, duration_text(value))});
  section.chart = make_chart("histogram", {{"x", "time waited (logarithmic)"},
                                           {"y", "waited in all"},
                                           {"bins", bins},
                                           {"marks", marks}});
  section.tables = {std::move(table)};
  return section;
}

std::string to_html(const BenchRecord& record, const Trace& trace) {
  const Report& report = record.result.report;
  const TracePicture picture = picture_of(trace);
  const Figures figures = figures_of(record);
  auto further = figures.rows();
  if (report.seconds > 0)
    further.push_back(
        {"copied MB/s",
         fmt::format("{:.1f}", static_cast<double>(report.copied_bytes) / 1e6 / report.seconds)});
  Page page{
      .title = "millrace bench: " + record.dataset,
      .subject = fmt::format("millrace bench of {}, {} in {:.2f} s", record.dataset,
                             count_text(report.samples, "sample"), report.seconds),
      .verdict = capitalised(record.result.verdict.text),
      .advice = record.result.verdict.advice,
      .warnings = warnings_of(record),
      .numbers = key_numbers(record, figures),
      .sections = {stage_section(report, record.result.device_idle),
                   timeline_section(picture),
                   stall_section(picture, report),
                   {.title = "Further numbers",
                    .tables = {{.title = "Over the measured time", .rows = std::move(further)}}}}};
  if (!report.bad_record_list.empty()) page.sections.push_back(bad_records(report));
  page.sections.push_back(circumstances(record));
  return page_html(page);
}

}  // namespace millrace::cli
