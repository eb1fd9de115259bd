// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <string>

#include "measure/bench/bench_output.h"
#include "measure/bench/copy_figures.h"
#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

using Json = Figures::Json;

template <typename Bytes>
double megabytes(Bytes bytes) {
  return static_cast<double>(bytes) / 1e6;
}

Json durations_json(const Durations& durations) {
  return {{"p50", durations.p50_ms},
          {"p95", durations.p95_ms},
          {"p99", durations.p99_ms},
          {"max", durations.max_ms},
          {"total", durations.total_ms}};
}

void add_rates(Figures& figures, const BenchResult& result) {
  const Report& report = result.report;
  const auto per_second = [&](double count) {
    return report.seconds > 0 ? count / report.seconds : 0;
  };
  figures.add("samples_per_second", "samples/s", "{:.1f}",
              per_second(static_cast<double>(report.samples)));
  figures.add("batches_per_second", "batches/s", "{:.2f}",
              per_second(static_cast<double>(report.batches)));
  figures.add("encoded_mb_per_second", "encoded MB/s", "{:.1f}",
              per_second(megabytes(report.encoded_bytes)));
  figures.key("epoch_samples_per_second", Json(result.epoch_rates));
  std::string rates;
  for (const double rate : result.epoch_rates)
    rates += fmt::format("{}{:.1f}", rates.empty() ? "" : ", ", rate);
  if (!rates.empty()) figures.row("samples/s of each epoch", rates);
  figures.key("seconds", report.seconds);
  figures.key("batches", report.batches);
  figures.key("samples", report.samples);
}

void add_waits(Figures& figures, const BenchResult& result) {
  const auto add = [&](const char* key, const char* label, const Durations& waits) {
    figures.key(key, durations_json(waits));
    figures.row(label, fmt::format("p50 {:.3f}   p95 {:.3f}   p99 {:.3f}   max {:.3f} ms",
                                   waits.p50_ms, waits.p95_ms, waits.p99_ms, waits.max_ms));
  };
  add("stall_ms", "stall (data not made)", result.report.stall);
  add("ahead_ms", "ahead (no slot free)", result.report.ahead);
  figures.key("device_idle_percent", percent_json(result.device_idle));
  figures.row("device idle", result.device_idle ? fmt::format("{:.2f}%", 100 * *result.device_idle)
                                                : "no step to be idle for");
  figures.key("device_step_ms", json_of(result.device_step_ms));
}

/// Adds sizes of the dataset and of caches: a dataset that fits into a cache is read faster.
void add_sizes(Figures& figures, const BenchRecord& record) {
  const auto& bytes = record.dataset_bytes;
  const auto& caches = record.machine.last_level_cache_bytes;
  figures.key("dataset_mb", bytes ? Json(megabytes(*bytes)) : Json());
  figures.key("last_level_cache_mb", caches ? Json(megabytes(*caches)) : Json());
  if (!bytes) return;
  std::string text = fmt::format("{:.1f} MB in files, ", megabytes(*bytes));
  if (!caches)
    text += "last-level caches of unknown size";
  else
    text += fmt::format("{:.1f} MB of last-level caches{}", megabytes(*caches),
                        *bytes <= *caches ? ", which may hold all of it" : "");
  figures.row("dataset beside caches", text);
}

/// Adds figures of the device and the trainer's thread.
void add_device(Figures& figures, const BenchRecord& record) {
  const BenchResult& result = record.result;
  const auto& floor = record.baselines.idle_floor;
  figures.key("idle_floor_percent", percent_json(floor));
  if (floor)
    figures.row(
        "idle's floor",
        fmt::format("{:.2f}% (the same steps without a loader, by the same events)", 100 * *floor));
  const auto& by_synthetic = record.baselines.idle_by_synthetic;
  figures.key("idle_by_synthetic_percent", percent_json(by_synthetic));
  if (by_synthetic)
    figures.row(
        "idle by synthetic input",
        fmt::format("{:.2f}% (beside the same steps without a loader)", 100 * *by_synthetic));
  add_copy_figures(figures, record);
  const ConsumerTime& consumer = result.consumer;
  figures.key("consumer_us_per_batch",
              {{"mean", consumer.mean_us}, {"p50", consumer.p50_us}, {"p99", consumer.p99_us}});
  figures.row(
      "trainer's thread",
      fmt::format("mean {:.1f}   p50 {:.1f}   p99 {:.1f} µs of CPU time per batch for the loader",
                  consumer.mean_us, consumer.p50_us, consumer.p99_us));
  const auto& first = record.baselines.first_step;
  figures.key("first_step_ms",
              first ? Json{{"parts", first->parts_ms}, {"whole", first->whole_ms}} : Json());
  if (first)
    figures.row(
        "first step after",
        fmt::format(
            "{:.1f} ms on micro-batches as they come, {:.1f} ms on whole batches: {:.1f} ms saved",
            first->parts_ms, first->whole_ms, first->whole_ms - first->parts_ms));
  const auto& device_growth = result.device_memory_growth;
  const auto& growth = result.rss_growth;
  figures.key("rss_growth_mb", growth ? Json(megabytes(*growth)) : Json());
  figures.key("device_memory_growth_mb", device_growth ? Json(megabytes(*device_growth)) : Json());
  figures.row(
      "memory since warm-up",
      (growth ? fmt::format("{:+.1f} MB of the process", megabytes(*growth))
              : "unknown for the process") +
          (device_growth ? fmt::format(", {:+.1f} MB of the device", megabytes(*device_growth))
                         : ""));
  figures.add("first_batch_ms", "first batch after", "{:.1f} ms",
              1e3 * result.report.first_batch_seconds);
}

void add_workers(Figures& figures, const Report& report) {
  Json shares = Json::object();
  std::string shares_text;
  for (const StageReport& stage : report.stages) {
    if (!stage.on_device && stage.name != "stream" && stage.name != "trainer")
      shares[stage.name] = 100 * stage.share;
    if (stage.share > 0)
      shares_text += fmt::format("{}{} {:.1f}%", shares_text.empty() ? "" : "   ", stage.name,
                                 100 * stage.share);
  }
  figures.key("worker_time_percent", shares);
  figures.row("worker time", shares_text);

  figures.key("worker_utilization_percent", 100 * report.worker_utilization);
  figures.key("active_workers", report.active_workers);
  figures.key("workers_bound", report.workers_bound);
  figures.key("worker_delay_percent", percent_json(report.worker_delay));
  std::string text =
      fmt::format("{:.1f}% of {}{}", 100 * report.worker_utilization, report.workers,
                  report.workers_bound ? ", bound to their NUMA node" : ", not bound");
  if (report.active_workers < report.workers - 0.05)
    text += fmt::format(", {:.1f} active", report.active_workers);
  if (report.worker_delay)
    text += fmt::format("; kept waiting for a processor {:.1f}%", 100 * *report.worker_delay);
  figures.row("worker utilization", text);

  std::string decoders;
  for (const auto& [decoder_name, count] : report.decoders)
    decoders += fmt::format("{}{} by {}", decoders.empty() ? "" : ", ", count, decoder_name);
  figures.key("ways", Json(report.decoders));
  figures.key("way_seconds", Json(report.decoder_seconds));
  if (!decoders.empty()) figures.row("samples decoded", decoders);
}

/// Adds the NUMA nodes, with one row each if there are several.
void add_nodes(Figures& figures, const Report& report) {
  Json nodes = Json::array();
  for (const NodeReport& node : report.nodes) {
    nodes.push_back({{"node", node.node},
                     {"workers", node.workers},
                     {"workers_bound", node.workers_bound},
                     {"slots", node.slots},
                     {"samples", node.samples},
                     {"samples_by_helpers", node.samples_by_helpers},
                     {"memory_on_node", json_of(node.memory_on_node)}});
    if (report.nodes.size() < 2) continue;
    const double helped = node.samples > 0 ? 100 * static_cast<double>(node.samples_by_helpers) /
                                                 static_cast<double>(node.samples)
                                           : 0;
    figures.row(
        fmt::format("NUMA node {}", node.node),
        fmt::format("{}{}, {}{}, {} samples, {:.1f}% of them made by other nodes' workers",
                    count_text(node.workers, "worker"), node.workers_bound ? "" : " (not bound)",
                    count_text(node.slots, "slot"),
                    node.memory_on_node == false ? " (memory not on it)" : "", node.samples,
                    helped));
  }
  figures.key("nodes", nodes);
}

/// Adds the number of samples of each source, and their mean time.
void add_sources(Figures& figures, const CacheReport& cache) {
  Json counts = Json::object();
  Json times = Json::object();
  std::string text;
  for (const auto& [name, made] : {std::pair{"cache", SampleTime{cache.hits, cache.hit_seconds}},
                                   {"recoded", cache.recoded},
                                   {"hint", cache.hinted},
                                   {"record", cache.plain}}) {
    const double ms = made.samples > 0 ? made.seconds * 1e3 / static_cast<double>(made.samples) : 0;
    counts[name] = made.samples;
    times[name] = ms;
    if (made.samples > 0)
      text += fmt::format("{}{} {} ({:.3f} ms)", text.empty() ? "" : ", ", name, made.samples, ms);
  }
  figures.key("made_from", std::move(counts));
  figures.key("made_from_ms", std::move(times));
  if (cache.hits + cache.misses > 0) figures.row("samples made from", text);
}

void add_memory(Figures& figures, const BenchResult& result) {
  const Report& report = result.report;
  figures.key("ready_batches", report.ready_batches);
  figures.key("free_slots", report.free_slots);
  figures.row("ready batches, free slots",
              fmt::format("{:.1f}, {:.1f} (mean)", report.ready_batches, report.free_slots));
  const auto made = static_cast<double>(report.samples_made);
  figures.add("cpu_ms_per_sample", "CPU time per sample", "{:.3f} ms",
              made > 0 ? result.cpu_seconds * 1e3 / made : 0);
  const auto& peak = result.peak_rss_beyond_map;
  figures.key("peak_rss_beyond_map_mb", peak ? Json(megabytes(*peak)) : Json());
  figures.row("peak RSS beyond the map",
              peak ? fmt::format("{:.1f} MB", megabytes(*peak)) : "unknown");
  figures.key("pinned_mb", megabytes(report.memory.pinned_bytes));
  figures.key("device_mb", megabytes(report.memory.device_bytes));
  figures.key("staging_mb", megabytes(report.memory.staging_bytes));
  figures.add("index_mb", "record hints", "{:.1f} MB", megabytes(report.memory.index_bytes));
  figures.key("cache_mb", megabytes(report.memory.cache_bytes));
  figures.key("cache_hits", report.cache.hits);
  figures.key("cache_misses", report.cache.misses);
  add_sources(figures, report.cache);
  if (report.cache.hits + report.cache.misses > 0)
    figures.row("cache", fmt::format("{:.1f} MB; {} samples made from it, {} not",
                                     megabytes(report.memory.cache_bytes), report.cache.hits,
                                     report.cache.misses));
  figures.row("pinned / device memory",
              fmt::format("{:.1f} MB / {:.1f} MB", megabytes(report.memory.pinned_bytes),
                          megabytes(report.memory.device_bytes)));
  const MemoryReport& memory = report.memory;
  figures.key("memory_limit_mb", {{"slots", megabytes(memory.pinned_bytes)},
                                  {"scratch", megabytes(memory.scratch_limit_bytes)},
                                  {"index", megabytes(memory.index_limit_bytes)},
                                  {"cache", megabytes(memory.cache_limit_bytes)},
                                  {"total", megabytes(memory.limit_bytes())}});
  figures.row(
      "memory at most",
      fmt::format("{:.1f} MB: slots {:.1f}, scratch {:.1f}, index {:.1f}, cache {:.1f}",
                  megabytes(memory.limit_bytes()), megabytes(memory.pinned_bytes),
                  megabytes(memory.scratch_limit_bytes), megabytes(memory.index_limit_bytes),
                  megabytes(memory.cache_limit_bytes)));
}

void add_ceiling(Figures& figures, const std::optional<CeilingResult>& ceiling) {
  if (!ceiling) return figures.key("ceiling", {});
  Json json;
  const auto add = [&](const std::string& key, const char* what, const Spread& spread) {
    json[key] = spread.median;
    json[key + "_min"] = spread.min;
    json[key + "_max"] = spread.max;
    json[key + "_low"] = spread.low;
    json[key + "_high"] = spread.high;
    figures.row(
        what, fmt::format("{:.3f} x T {} (95% {:.3f} to {:.3f}; {} pairs, {:.3f} to {:.3f})",
                          spread.median, what, spread.low, spread.high, ceiling->pairs, spread.min,
                          spread.max));
  };
  add("rate_ratio", "by rate", ceiling->rate_ratio);
  add("cpu_ratio", "by CPU time", ceiling->cpu_ratio);
  json["samples_per_second"] = ceiling->loader_samples_per_second;
  json["reference_images_per_second"] = ceiling->reference_images_per_second;
  json["pairs"] = ceiling->pairs;
  figures.row(
      "in absolute terms",
      fmt::format("{:.0f} samples/s; T, libjpeg-turbo's full decode, {:.0f} images/s",
                  ceiling->loader_samples_per_second, ceiling->reference_images_per_second));
  figures.key("ceiling", json);
}

void add_reduced(Figures& figures, const std::optional<ReducedQuality>& reduced) {
  if (!reduced) return figures.key("reduced", {});
  const auto decibels = [&](double value) { return reduced->differing > 0 ? Json(value) : Json(); };
  figures.key("reduced", {{"compared", reduced->compared},
                          {"differing", reduced->differing},
                          {"psnr_db", decibels(reduced->psnr_db)},
                          {"lowest_psnr_db", decibels(reduced->lowest_psnr_db)}});
  std::string text = fmt::format("{} of {} samples differ from the exact ones", reduced->differing,
                                 reduced->compared);
  if (reduced->differing > 0)
    text += fmt::format("; PSNR {:.1f} dB, lowest {:.1f} dB", reduced->psnr_db,
                        reduced->lowest_psnr_db);
  figures.row("reduced resolution", text);
}

}  // namespace

Figures figures_of(const BenchRecord& record) {
  const BenchResult& result = record.result;
  const Report& report = result.report;
  Figures figures;
  add_rates(figures, result);
  add_sizes(figures, record);
  add_waits(figures, result);
  add_device(figures, record);
  add_workers(figures, report);
  add_nodes(figures, report);
  add_memory(figures, result);
  figures.key("bad_records", report.bad_records);
  if (report.bad_records > 0) figures.row("bad records", fmt::format("{}", report.bad_records));
  add_reduced(figures, record.reduced);
  add_ceiling(figures, record.ceiling);
  if (result.digest)
    figures.add("digest", "digest", "{}", fmt::format("{:016x}", *result.digest));
  else
    figures.key("digest", {});
  figures.key("warnings", warnings_of(record));
  return figures;
}

Figures figures_of(const StageReport& stage, const Report& report) {
  const double all = stage.lanes * report.seconds;
  const auto percent = [&](double seconds) {
    return fmt::format("{:.1f}%", all > 0 ? 100 * seconds / all : 0);
  };
  Figures figures;
  figures.add("name", "stage", "{}", stage.name);
  figures.add("lanes", "lanes", "{:.1f}", stage.lanes);
  figures.key("busy_seconds", stage.busy_seconds);
  figures.add("occupancy_percent", "busy", "{:.1f}%", 100 * stage.occupancy);
  figures.key("waiting_input_seconds", stage.waiting_input_seconds);
  figures.row("waits for input", percent(stage.waiting_input_seconds));
  figures.key("waiting_output_seconds", stage.waiting_output_seconds);
  figures.row("for output", percent(stage.waiting_output_seconds));
  figures.add("count", "count", "{}", stage.each.count);
  figures.key("each_ms", durations_json(stage.each));
  for (const auto& [name, value] :
       {std::pair("p50", stage.each.p50_ms), std::pair("p95", stage.each.p95_ms),
        std::pair("p99", stage.each.p99_ms), std::pair("max ms", stage.each.max_ms)})
    figures.row(name, fmt::format("{:.3f}", value));
  return figures;
}

std::vector<std::string> warnings_of(const BenchRecord& record) {
  return warnings_of(record.settings, record.result.report, record.result.disturbed);
}

std::string step_text(const BenchRecord& record) {
  return step_text(record, record.settings, record.result.device_step_ms.value_or(0));
}

Figures options_of(const BenchRecord& record) {
  const BenchSettings& settings = record.settings;
  Figures options = setup_figures(record, settings, settings.dataset->size());
  options.key("convert", record.convert.empty() ? Json() : Json(record.convert));
  options.row("Images on the device",
              record.convert.empty() ? "as they were made" : record.convert);
  options.key("step", settings.gemm > 0 ? Json(fmt::format("gemm:{}", settings.gemm)) : Json());
  options.row("Step", step_text(record));
  options.key("warmup", settings.warmup);
  options.key("epochs", settings.epochs);
  options.key("index_bytes", json_of(settings.pipeline.index_bytes));
  options.key("cache_bytes", settings.pipeline.cache_bytes);
  options.add("launch_cores", "Processors left free to launch kernels", "{}",
              settings.pipeline.runtime->launch_cores());
  options.row("Measured", fmt::format("{} in {:.2f} s after {} of warm-up",
                                      count_text(record.result.report.batches, "batch"),
                                      record.result.report.seconds, settings.warmup));
  return options;
}

}  // namespace millrace::cli
