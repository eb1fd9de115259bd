// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/bench_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

constexpr int name_width = 26;

/// The figures of a stage that fit into a line of a terminal, with the width of each column. The
/// page has all figures.
constexpr std::pair<std::string_view, int> stage_columns[] = {
    {"lanes", 8}, {"busy", 9},  {"waits for input", 16}, {"for output", 16}, {"p50", 12},
    {"p99", 9},   {"max ms", 9}};

std::optional<std::uint64_t> bytes_of(const std::vector<std::string>& files) {
  if (files.empty()) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    bytes += std::filesystem::file_size(file, error);
    if (error) return std::nullopt;
  }
  return bytes;
}

/// Returns a table with a line per stage: its shares of time, and the durations of its runs.
std::string stage_table(const Report& report) {
  std::string text = fmt::format("  {:<10}", "stage");
  for (const auto& [name, width] : stage_columns) text += fmt::format("{:>{}}", name, width);
  text += "\n";
  for (const StageReport& stage : report.stages) {
    text += fmt::format("  {:<10}", stage.name);
    const auto rows = figures_of(stage, report).rows();
    for (const auto& [name, width] : stage_columns)
      for (const auto& row : rows)
        if (row[0] == name) text += fmt::format("{:>{}}", row[1], width);
    text += "\n";
  }
  return text;
}

}  // namespace

std::shared_ptr<const Trace> measure_bench(BenchRecord& record, bool traces_all) {
  BenchSettings& settings = record.settings;
  settings.trace = std::make_shared<Trace>(
      TraceOptions{.lanes = traces_all ? std::vector<std::string>() : bench_lanes()});
  record.dataset_bytes = bytes_of(settings.dataset->facts().files);
  record.result = run_bench(settings);
  std::shared_ptr<const Trace> trace = std::exchange(settings.trace, nullptr);
  record.baselines = measure_baselines(settings, record.result);
  return trace;
}

std::string to_text(const BenchRecord& record) {
  const BenchSettings& settings = record.settings;
  const Report& report = record.result.report;
  std::string text = setup_text(record, settings, settings.dataset->size());
  text += fmt::format("measured {} batches in {:.2f} s after {} of warm-up", report.batches,
                      report.seconds, settings.warmup);
  text +=
      settings.step_work().any() ? ", a step of " + step_text(record) + "\n\n" : ", no step\n\n";
  for (const auto& row : figures_of(record).rows()) text += table_row(row[0], row[1], name_width);
  for (const std::string& warning : warnings_of(record))
    text += table_row("warning", warning, name_width);
  const Verdict& verdict = record.result.verdict;
  return text + "\n" + stage_table(report) + "\n" + verdict.text + "\n" + verdict.advice + "\n";
}

std::string to_json(const BenchRecord& record) {
  const BenchResult& result = record.result;
  Figures::Json json = figures_of(record).json();
  json["stages"] = Figures::Json::array();
  for (const StageReport& stage : result.report.stages)
    json["stages"].push_back(figures_of(stage, result.report).json());
  json["verdict"] = {{"stage", result.verdict.stage},
                     {"text", result.verdict.text},
                     {"advice", result.verdict.advice},
                     {"share_percent", 100 * result.verdict.share},
                     {"speedup_limit", result.verdict.speedup_limit},
                     {"next_bound", result.verdict.next_bound}};
  json["options"] = options_of(record).json();
  json["machine"] = facts_json(record.machine);
  json["machine"]["steal_percent"] = 100 * result.steal;
  return json_text(json);
}

}  // namespace millrace::cli
