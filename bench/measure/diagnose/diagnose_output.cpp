// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/diagnose_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "measure/text/figures.h"

namespace millrace::cli {
namespace {

using Json = Figures::Json;

constexpr double bytes_per_mb = 1e6;
/// Bytes fetched in warm phases are reported if they exceed this share of the sampled records'
/// bytes.
constexpr double much_fetched = 0.05;

/// Returns the number of batches in an epoch. A short last batch counts as a fraction.
double epoch_batches(const DiagnoseRecord& record) {
  return static_cast<double>(record.result.records) /
         static_cast<double>(record.settings.bench.pipeline.batch_size);
}

/// A phase, with its name in the text and its key in the JSON.
struct Phase {
  const char* name;
  const char* key;
  const std::vector<double>& values;
};

std::vector<Phase> phases(const PhaseTimes& times) {
  return {{"step alone", "step", times.step},
          {"batch on the device", "ready_batch", times.ready_batch},
          {"copies, nothing made", "copies", times.copies},
          {"loader, warm cache", "loader", times.loader},
          {"epoch from a start, warm", "warm_pass", times.warm_pass},
          {"epoch from a start, cold", "cold_pass", times.cold_pass}};
}

std::string table(const DiagnoseRecord& record) {
  std::string text = fmt::format("  {:<26}{:>14}{:>14}{:>15}{:>14}\n", "", "ms per batch",
                                 "95% noise", "of an epoch", "s per epoch");
  for (const auto& row : part_rows(record))
    text += fmt::format("  {:<26}{:>14}{:>14}{:>15}{:>14}{}{}\n", row[0], row[1], row[2], row[3],
                        row[4], row[5].empty() ? "" : "  ", row[5]);
  return text;
}

std::string measurements(const DiagnoseRecord& record) {
  std::string text =
      fmt::format("  measured, mean and standard deviation of {} rounds, ms per batch:\n",
                  record.settings.rounds);
  for (const auto& row : phase_rows(record))
    text += fmt::format("  {:<26}{:>14}{:>14}\n", row[0], row[1], row[2]);
  return text;
}

std::string cold_text(const DiagnoseRecord& record) {
  const DiagnoseResult& result = record.result;
  if (!result.cold.missing.empty()) return "fetch stall: not measured: " + result.cold.missing;
  const unsigned passes = result.passes_per_round * record.settings.rounds;
  std::string text =
      fmt::format("cold cache: {} passes of {} batches; {:.1f}% of {:.1f} MB stayed cached", passes,
                  result.pass_batches, 100 * result.cold.kept,
                  static_cast<double>(result.dataset_bytes) / bytes_per_mb);
  if (result.cold.storage_bytes)
    text += fmt::format(
        "; {:.1f} MB fetched a pass, {:.0f} MB/s",
        static_cast<double>(*result.cold.storage_bytes) / bytes_per_mb / passes,
        static_cast<double>(*result.cold.storage_bytes) / bytes_per_mb / result.cold.seconds);
  return text;
}

Json parts_json(const DiagnoseRecord& record) {
  Json json = Json::object();
  for (const EpochShare& part : record.account.parts)
    json[names_of(part.part).key] = {
        {"ms_per_batch", part.batch_ms},
        {"percent", 100 * part.share},
        {"seconds_per_epoch", part.batch_ms * epoch_batches(record) / 1e3},
        {"measured_ms", part.measured.mean},
        {"deviation_ms", part.measured.deviation},
        {"noise_ms", part.measured.noise},
        {"within_noise", part.within_noise},
        {"unsure", part.unsure}};
  if (!record.result.cold.missing.empty()) json[names_of(EpochPart::fetch).key] = nullptr;
  return json;
}

Json cold_json(const ColdPasses& cold) {
  return {{"measured", cold.missing.empty()},
          {"missing", cold.missing.empty() ? Json() : Json(cold.missing)},
          {"kept_percent", 100 * cold.kept},
          {"storage_bytes", json_of(cold.storage_bytes)},
          {"seconds", cold.seconds}};
}

/// Returns the stages that the device runs after the copy, in their order.
std::vector<StageReport> device_stages(const Report& report) {
  std::vector<StageReport> stages;
  std::ranges::copy_if(report.stages, std::back_inserter(stages), [](const StageReport& stage) {
    return stage.on_device && stage.name != "copy";
  });
  return stages;
}

Json options_json(const DiagnoseRecord& record) {
  Figures options = setup_figures(record, record.settings.bench, record.result.records);
  options.key("dataset_bytes", record.result.dataset_bytes);
  options.key("rounds", record.settings.rounds);
  return options.json();
}

}  // namespace

std::vector<std::vector<std::string>> part_rows(const DiagnoseRecord& record) {
  const double per_epoch = epoch_batches(record) / 1e3;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, double batch_ms, const std::string& noise, double share,
                       const char* certainty) {
    rows.push_back({name, fmt::format("{:.3f}", batch_ms), noise,
                    fmt::format("{:.1f}%", 100 * share),
                    fmt::format("{:.3f}", batch_ms * per_epoch), certainty});
  };
  for (const EpochShare& part : record.account.parts)
    add(names_of(part.part).row, part.batch_ms, fmt::format("+- {:.3f}", part.measured.noise),
        part.share,
        part.unsure         ? "unsure: within a large noise"
        : part.within_noise ? "within noise"
                            : "");
  const double epoch_ms = record.account.batch_ms;
  const double fetch = record.account.share(EpochPart::fetch);
  add("an epoch", epoch_ms, "", 1, "");
  if (fetch > 0) add("  out of the page cache", (1 - fetch) * epoch_ms, "", 1 - fetch, "");
  return rows;
}

std::vector<std::vector<std::string>> phase_rows(const DiagnoseRecord& record) {
  std::vector<std::vector<std::string>> rows;
  for (const Phase& phase : phases(record.result.times)) {
    if (phase.values.empty()) continue;
    const Repeated time = repeated(phase.values);
    rows.push_back(
        {phase.name, fmt::format("{:.3f}", time.mean), fmt::format("+- {:.3f}", time.deviation)});
  }
  return rows;
}

std::vector<std::string> remarks(const DiagnoseRecord& record) {
  const DiagnoseResult& result = record.result;
  std::vector<std::string> sentences = {
      cold_text(record),
      fmt::format("device idle, warm cache: {:.1f}% as the device's stream saw it",
                  100 * result.device_idle)};
  const std::vector<StageReport> stages = device_stages(result.report);
  if (!stages.empty()) {
    std::string shares;
    for (const StageReport& stage : stages)
      shares += fmt::format("{}{} {:.1f}%", shares.empty() ? "" : ", ", stage.name,
                            100 * stage.occupancy);
    sentences.push_back("stages of the device, shares of its time: " + shares);
    // A stage of another name makes samples, as workers do otherwise.
    if (stages.front().name != "move" && stages.front().name != "convert")
      sentences.back() += fmt::format("; {} is a part of {}", stages.front().name,
                                      names_of(EpochPart::preparation).stall);
  }
  if (result.sampled_records < result.records)
    sentences.push_back(fmt::format("{} records drawn at random stand for {}",
                                    result.sampled_records, result.records));
  const auto sampled_bytes = static_cast<double>(result.dataset_bytes) *
                             static_cast<double>(result.sampled_records) /
                             static_cast<double>(result.records);
  if (result.warm_storage_bytes &&
      static_cast<double>(*result.warm_storage_bytes) > much_fetched * sampled_bytes)
    sentences.push_back(fmt::format(
        "with a warm cache {:.1f} MB were fetched from storage all the same: something takes the "
        "page cache's memory, and preparation has some of the fetch stall in it",
        static_cast<double>(*result.warm_storage_bytes) / bytes_per_mb));
  return sentences;
}

std::vector<std::string> warnings_of(const DiagnoseRecord& record) {
  return warnings_of(record.settings.bench, record.result.report, record.result.disturbed);
}

void diagnose(DiagnoseRecord& record) {
  record.result = run_diagnose(record.settings);
  record.account = account_stalls(record.result.times);
  record.verdict = judge_stalls(record.account, {.report = record.result.report,
                                                 .dataset_bytes = record.result.dataset_bytes,
                                                 .memory_bytes = record.machine.memory_bytes});
}

std::string to_text(const DiagnoseRecord& record) {
  const BenchSettings& bench = record.settings.bench;
  std::string text = setup_text(record, bench, record.result.records);
  text += fmt::format("a step of {}, an epoch of {:.1f} batches\n\n", step_text(record, bench),
                      epoch_batches(record));
  text += table(record) + "\n" + measurements(record) + "\n";
  for (const std::string& remark : remarks(record)) text += "  " + remark + "\n";
  for (const std::string& warning : warnings_of(record)) text += "  warning: " + warning + "\n";
  text += "\n";
  return text + record.verdict.text + "\n" + record.verdict.advice + "\n";
}

std::string to_json(const DiagnoseRecord& record) {
  Json rounds = Json::object();
  for (const Phase& phase : phases(record.result.times)) rounds[phase.key] = phase.values;
  const DiagnoseResult& result = record.result;
  Json json = {{"epoch",
                {{"ms_per_batch", record.account.batch_ms},
                 {"batches", epoch_batches(record)},
                 {"seconds", record.account.batch_ms * epoch_batches(record) / 1e3},
                 {"waiting_percent", 100 * record.account.waiting()}}},
               {"parts", parts_json(record)},
               {"rounds_ms_per_batch", rounds},
               {"cold_cache", cold_json(result.cold)},
               {"warm_storage_bytes", json_of(result.warm_storage_bytes)},
               {"device_idle_percent", 100 * result.device_idle},
               {"sampled_records", result.sampled_records},
               {"pass_batches", result.pass_batches},
               {"passes_per_round", result.passes_per_round},
               {"warnings", warnings_of(record)},
               {"verdict",
                {{"stage", record.verdict.stage},
                 {"percent", 100 * record.verdict.share},
                 {"speedup_limit", record.verdict.speedup_limit},
                 {"next_bound", record.verdict.next_bound},
                 {"text", record.verdict.text},
                 {"advice", record.verdict.advice}}},
               {"options", options_json(record)},
               {"machine", facts_json(record.machine)}};
  if (const StageReport* const stage = device_stage(result.report))
    json["device_stage"] = {{"name", stage->name}, {"percent", 100 * stage->occupancy}};
  json["device_stages"] = Json::array();
  for (const StageReport& stage : device_stages(result.report))
    json["device_stages"].push_back({{"name", stage.name}, {"percent", 100 * stage.occupancy}});
  return json_text(json);
}

}  // namespace millrace::cli
