// SPDX-License-Identifier: Apache-2.0
#include "measure/bench_output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "measure/bench_rows.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double mega = 1e6;
constexpr double giga = 1e9;

double milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double per_second(double count, const Report& report) {
  return report.seconds > 0 ? count / report.seconds : 0;
}

double samples_per_second(const Report& report) {
  return per_second(static_cast<double>(report.samples), report);
}
double batches_per_second(const Report& report) {
  return per_second(static_cast<double>(report.batches), report);
}
double encoded_mb_per_second(const Report& report) {
  return per_second(static_cast<double>(report.encoded_bytes) / mega, report);
}

double cpu_ms_per_sample(const BenchResult& result) {
  const auto samples = static_cast<double>(result.report.samples_made);
  return samples > 0 ? result.cpu_seconds * 1e3 / samples : 0;
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<26}{}\n", name, value);
}

std::string durations_row(const char* name, const Durations& durations) {
  return row(name,
             fmt::format("p50 {:.3f}   p95 {:.3f}   p99 {:.3f}   max {:.3f} ms", durations.p50_ms,
                         durations.p95_ms, durations.p99_ms, durations.max_ms));
}

std::string spread_text(const Spread& spread, const char* what) {
  return fmt::format("{:.3f} x T {} (of five, {:.3f} to {:.3f})", spread.median, what, spread.min,
                     spread.max);
}

std::string stage_shares(const Report& report) {
  std::string text;
  for (const StageReport& stage : report.stages)
    if (stage.share > 0)
      text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : "   ", stage.name, 100 * stage.share);
  return text;
}

/// A line per stage: how its time went, and how long it takes each time.
std::string stage_table(const Report& report) {
  std::string text =
      fmt::format("  {:<10}{:>8}{:>9}{:>16}{:>16}{:>12}{:>9}{:>9}\n", "stage", "lanes", "busy",
                  "waits for input", "for output", "p50", "p99", "max ms");
  for (const StageReport& stage : report.stages) {
    const double all = stage.lanes * report.seconds;
    const auto share = [&](double seconds) { return all > 0 ? 100 * seconds / all : 0; };
    text += fmt::format("  {:<10}{:>8.1f}{:>8.1f}%{:>15.1f}%{:>15.1f}%{:>12.3f}{:>9.3f}{:>9.3f}\n",
                        stage.name, stage.lanes, 100 * stage.occupancy,
                        share(stage.waiting_input_seconds), share(stage.waiting_output_seconds),
                        stage.each.p50_ms, stage.each.p99_ms, stage.each.max_ms);
  }
  return text;
}

std::string workers_text(const Report& report) {
  std::string text =
      fmt::format("{:.1f}% of {}{}", 100 * report.worker_utilization, report.workers,
                  report.workers_bound ? ", bound to their NUMA node" : ", not bound");
  if (report.active_workers < report.workers - 0.05)
    text += fmt::format(", {:.1f} active", report.active_workers);
  if (report.worker_delay)
    text += fmt::format("; kept waiting for a processor {:.1f}%", 100 * *report.worker_delay);
  return text;
}

/// A line per NUMA node, where there are several.
std::string node_rows(const Report& report) {
  std::string text;
  for (const NodeReport& node : report.nodes) {
    if (report.nodes.size() < 2) break;
    const double helped = node.samples > 0 ? 100 * static_cast<double>(node.samples_by_helpers) /
                                                 static_cast<double>(node.samples)
                                           : 0;
    text += row(
        fmt::format("NUMA node {}", node.node).c_str(),
        fmt::format(
            "{} worker{}{}, {} slot{}{}, {} samples, {:.1f}% of them made by other nodes' workers",
            node.workers, node.workers == 1 ? "" : "s", node.workers_bound ? "" : " (not bound)",
            node.slots, node.slots == 1 ? "" : "s",
            node.memory_on_node == false ? " (memory not on it)" : "", node.samples, helped));
  }
  return text;
}

Json nodes_json(const Report& report) {
  Json nodes = Json::array();
  for (const NodeReport& node : report.nodes)
    nodes.push_back(
        {{"node", node.node},
         {"workers", node.workers},
         {"workers_bound", node.workers_bound},
         {"slots", node.slots},
         {"samples", node.samples},
         {"samples_by_helpers", node.samples_by_helpers},
         {"memory_on_node", node.memory_on_node ? Json(*node.memory_on_node) : Json()}});
  return nodes;
}

Json to_json(const Durations& durations) {
  return {{"p50", durations.p50_ms},
          {"p95", durations.p95_ms},
          {"p99", durations.p99_ms},
          {"max", durations.max_ms},
          {"total", durations.total_ms}};
}

Json stages_json(const Report& report) {
  Json stages = Json::array();
  for (const StageReport& stage : report.stages)
    stages.push_back({{"name", stage.name},
                      {"lanes", stage.lanes},
                      {"busy_seconds", stage.busy_seconds},
                      {"waiting_input_seconds", stage.waiting_input_seconds},
                      {"waiting_output_seconds", stage.waiting_output_seconds},
                      {"occupancy_percent", 100 * stage.occupancy},
                      {"count", stage.each.count},
                      {"each_ms", to_json(stage.each)}});
  return stages;
}

Json to_json(const Verdict& verdict) {
  return {{"stage", verdict.stage},
          {"text", verdict.text},
          {"advice", verdict.advice},
          {"share_percent", 100 * verdict.share},
          {"speedup_limit", verdict.speedup_limit},
          {"next_bound", verdict.next_bound}};
}

Json options_json(const BenchRecord& record) {
  const BenchSettings& settings = record.settings;
  return {{"dataset", record.dataset},
          {"records", settings.dataset->size()},
          {"recipe", record.recipe_name},
          {"recipe_program", Json::parse(settings.recipe.to_json())},
          {"device", record.device},
          {"convert", record.convert.empty() ? Json() : Json(record.convert)},
          {"batch_size", settings.batch_size},
          {"workers", settings.runtime->workers()},
          {"prefetch", settings.prefetch},
          {"micro_batches", settings.micro_batches},
          {"step_ms", settings.gemm > 0 ? Json() : Json(milliseconds(settings.step))},
          {"step", settings.gemm > 0 ? Json(fmt::format("gemm:{}", settings.gemm)) : Json()},
          {"step_auto", record.step_is_auto},
          {"warmup", settings.warmup},
          {"batches", settings.batches},
          {"max_seconds", std::chrono::duration<double>(settings.duration).count()},
          {"seed", settings.seed}};
}

Json percent_json(std::optional<double> share) { return share ? Json(100 * *share) : Json(); }

Json first_step_json(const BesideResult& beside) {
  if (!beside.first_step) return {};
  return {{"parts", beside.first_step->parts_ms}, {"whole", beside.first_step->whole_ms}};
}

Json ceiling_json(const CeilingResult& ceiling) {
  return {{"rate_ratio", ceiling.rate_ratio.median},
          {"rate_ratio_min", ceiling.rate_ratio.min},
          {"rate_ratio_max", ceiling.rate_ratio.max},
          {"cpu_ratio", ceiling.cpu_ratio.median},
          {"cpu_ratio_min", ceiling.cpu_ratio.min},
          {"cpu_ratio_max", ceiling.cpu_ratio.max},
          {"samples_per_second", ceiling.loader_samples_per_second},
          {"reference_images_per_second", ceiling.reference_images_per_second}};
}

}  // namespace

Json machine_json(const Machine& machine) {
  Json libraries = Json::object();
  for (const auto& [name, version] : machine.libraries) libraries[name] = version;
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"numa_nodes", machine.numa_nodes},
          {"kernel", machine.kernel},
          {"compiler", machine.compiler},
          {"commit", machine.commit},
          {"libraries", libraries}};
}

std::string to_text(const BenchRecord& record) {
  const BenchSettings& settings = record.settings;
  const BenchResult& result = record.result;
  const Report& report = result.report;
  std::string text = fmt::format(
      "{}: {} records, recipe {}, {} workers, batches of {} in {} part{}, prefetch {}, seed {}\n",
      record.dataset, settings.dataset->size(), record.recipe_name, settings.runtime->workers(),
      settings.batch_size, settings.micro_batches, settings.micro_batches == 1 ? "" : "s",
      settings.prefetch, settings.seed);
  text += fmt::format("measured {} batches in {:.2f} s after {} of warm-up", report.batches,
                      report.seconds, settings.warmup);
  text +=
      settings.step_work().any() ? ", a step of " + step_text(record) + "\n\n" : ", no step\n\n";
  text += row("samples/s", fmt::format("{:.1f}", samples_per_second(report)));
  text += row("batches/s", fmt::format("{:.2f}", batches_per_second(report)));
  text += row("encoded MB/s", fmt::format("{:.1f}", encoded_mb_per_second(report)));
  text += durations_row("stall (data not made)", report.stall);
  text += durations_row("ahead (no slot free)", report.ahead);
  text += row("device idle", result.device_idle ? fmt::format("{:.2f}%", 100 * *result.device_idle)
                                                : "no step to be idle for");
  for (const auto& [name, value] : device_rows(record)) text += row(name.c_str(), value);
  text += row("first batch after", fmt::format("{:.1f} ms", 1e3 * report.first_batch_seconds));
  text += row("worker time", stage_shares(report));
  text += row("worker utilization", workers_text(report));
  text += node_rows(report);
  text += row("ready batches, free slots",
              fmt::format("{:.1f}, {:.1f} (mean)", report.ready_batches, report.free_slots));
  text += row("CPU time per sample", fmt::format("{:.3f} ms", cpu_ms_per_sample(result)));
  text += row("peak RSS beyond the map",
              fmt::format("{:.1f} MB", static_cast<double>(result.peak_rss_beyond_map) / mega));
  text += row(
      "pinned / device memory",
      fmt::format("{:.1f} MB / {:.1f} MB", static_cast<double>(report.memory.pinned_bytes) / mega,
                  static_cast<double>(report.memory.device_bytes) / mega));
  if (report.bad_records > 0) text += row("bad records", fmt::format("{}", report.bad_records));
  if (record.ceiling) {
    text += row("by rate", spread_text(record.ceiling->rate_ratio, "by rate"));
    text += row("by CPU time", spread_text(record.ceiling->cpu_ratio, "by CPU time"));
    text += row("in absolute terms",
                fmt::format("{:.0f} samples/s; T, libjpeg-turbo's full decode, {:.0f} images/s",
                            record.ceiling->loader_samples_per_second,
                            record.ceiling->reference_images_per_second));
  }
  if (result.digest) text += row("digest", hex(*result.digest));
  for (const std::string& warning : report.warnings) text += row("warning", warning);
  text += "\n" + stage_table(report);
  return text + "\n" + result.verdict.text + "\n" + result.verdict.advice + "\n";
}

std::string to_json(const BenchRecord& record) {
  const BenchResult& result = record.result;
  const Report& report = result.report;
  Json shares = Json::object();
  for (const StageReport& stage : report.stages)
    if (stage.name != "copy" && stage.name != "convert" && stage.name != "trainer")
      shares[stage.name] = 100 * stage.share;
  const auto& plain = record.beside.plain_copy_bytes_per_second;
  Json machine = machine_json(record.machine);
  machine["steal_percent"] = 100 * result.steal;
  Json json = {
      {"samples_per_second", samples_per_second(report)},
      {"batches_per_second", batches_per_second(report)},
      {"encoded_mb_per_second", encoded_mb_per_second(report)},
      {"seconds", report.seconds},
      {"batches", report.batches},
      {"samples", report.samples},
      {"stall_ms", to_json(report.stall)},
      {"ahead_ms", to_json(report.ahead)},
      {"device_idle_percent", percent_json(result.device_idle)},
      {"idle_by_synthetic_percent", percent_json(record.beside.idle_by_synthetic)},
      {"device_step_ms", result.device_step_ms ? Json(*result.device_step_ms) : Json()},
      {"h2d_gb_per_second", result.copies ? Json(result.copies->bytes_per_second / giga) : Json()},
      {"plain_h2d_gb_per_second", plain ? Json(*plain / giga) : Json()},
      {"h2d_percent_of_plain", percent_json(copies_of_plain(record))},
      {"copy_hidden_percent", percent_json(result.copy_hidden)},
      {"consumer_us_per_batch",
       {{"mean", result.consumer.mean_us},
        {"p50", result.consumer.p50_us},
        {"p99", result.consumer.p99_us}}},
      {"rss_growth_mb", static_cast<double>(result.rss_growth) / mega},
      {"device_memory_growth_mb",
       result.device_memory_growth ? Json(static_cast<double>(*result.device_memory_growth) / mega)
                                   : Json()},
      {"first_step_ms", first_step_json(record.beside)},
      {"first_batch_ms", 1e3 * report.first_batch_seconds},
      {"worker_time_percent", shares},
      {"worker_utilization_percent", 100 * report.worker_utilization},
      {"active_workers", report.active_workers},
      {"workers_bound", report.workers_bound},
      {"warnings", report.warnings},
      {"nodes", nodes_json(report)},
      {"worker_delay_percent", report.worker_delay ? Json(100 * *report.worker_delay) : Json()},
      {"ready_batches", report.ready_batches},
      {"free_slots", report.free_slots},
      {"stages", stages_json(report)},
      {"cpu_ms_per_sample", cpu_ms_per_sample(result)},
      {"peak_rss_beyond_map_mb", static_cast<double>(result.peak_rss_beyond_map) / mega},
      {"pinned_mb", static_cast<double>(report.memory.pinned_bytes) / mega},
      {"device_mb", static_cast<double>(report.memory.device_bytes) / mega},
      {"staging_mb", static_cast<double>(report.memory.staging_bytes) / mega},
      {"bad_records", report.bad_records},
      {"verdict", to_json(result.verdict)},
      {"ceiling", record.ceiling ? ceiling_json(*record.ceiling) : Json()},
      {"digest", result.digest ? Json(hex(*result.digest)) : Json()},
      {"options", options_json(record)},
      {"machine", machine}};
  return json.dump(2) + "\n";
}

}  // namespace millrace::cli
