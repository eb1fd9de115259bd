// SPDX-License-Identifier: Apache-2.0
#include "measure/bench_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "measure/bench_rows.h"
#include "page/html_page.h"
#include "page/machine_table.h"
#include "page/stage_bars.h"
#include "page/stall_histogram.h"
#include "page/timeline.h"

namespace millrace::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr double mega = 1e6;

double per_second(double count, const Report& report) {
  return report.seconds > 0 ? count / report.seconds : 0;
}

std::string plural(std::uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<KeyNumber> key_numbers(const BenchRecord& record) {
  const Report& report = record.result.report;
  const double active = report.active_workers > 0 ? report.active_workers : report.workers;
  const bool all_active = active > report.workers - 0.05;
  const Verdict& verdict = record.result.verdict;
  std::vector<KeyNumber> numbers = {
      {.name = "Throughput",
       .value = fmt::format("{:.1f}", per_second(static_cast<double>(report.samples), report)),
       .unit = "samples/s",
       .detail = fmt::format("{:.2f} batches of {} per second",
                             per_second(static_cast<double>(report.batches), report),
                             record.settings.batch_size)},
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
                             report.cores > 0 ? ", " + plural(report.cores, "core") : "")}};
  if (verdict.speedup_limit > 1.005)
    numbers.push_back({.name = "More workers give",
                       .value = fmt::format("up to {:.2f}x", verdict.speedup_limit),
                       .detail = verdict.next_bound.empty()
                                     ? "on cores of their own"
                                     : "then bound by " + verdict.next_bound});
  return numbers;
}

Rows further_numbers(const BenchRecord& record) {
  const BenchResult& result = record.result;
  const Report& report = result.report;
  Rows rows = {
      {"Encoded data read",
       fmt::format("{:.1f} MB/s",
                   per_second(static_cast<double>(report.encoded_bytes) / mega, report))},
      {"Copied to the device",
       fmt::format("{:.1f} MB/s",
                   per_second(static_cast<double>(report.copied_bytes) / mega, report))},
      {"Ahead of the device",
       fmt::format("p50 {}, p99 {}, longest {}", duration_text(report.ahead.p50_ms),
                   duration_text(report.ahead.p99_ms), duration_text(report.ahead.max_ms))},
      {"First batch after", duration_text(1e3 * report.first_batch_seconds)},
      {"Batches ready, mean", fmt::format("{:.2f}", report.ready_batches)},
      {"Free host slots, mean",
       fmt::format("{:.2f} of {}", report.free_slots, record.settings.prefetch)},
      {"CPU time per sample",
       duration_text(report.samples_made > 0
                         ? 1e3 * result.cpu_seconds / static_cast<double>(report.samples_made)
                         : 0)},
      {"Workers waited for a core", report.worker_delay
                                        ? percent_text(*report.worker_delay) + " of their time"
                                        : "not known here"},
      {"Pinned and device memory",
       fmt::format("{:.1f} MB and {:.1f} MB",
                   static_cast<double>(report.memory.pinned_bytes) / mega,
                   static_cast<double>(report.memory.device_bytes) / mega)},
      {"Peak memory beyond the map",
       fmt::format("{:.1f} MB", static_cast<double>(result.peak_rss_beyond_map) / mega)}};
  for (const auto& [name, value] : device_rows(record)) rows.push_back({name, value});
  if (record.ceiling)
    rows.push_back({"Beside libjpeg-turbo's full decode",
                    fmt::format("{:.3f} x by rate, {:.3f} x by CPU time (medians of five); {:.0f} "
                                "samples/s against {:.0f} images/s",
                                record.ceiling->rate_ratio.median, record.ceiling->cpu_ratio.median,
                                record.ceiling->loader_samples_per_second,
                                record.ceiling->reference_images_per_second)});
  if (report.bad_records > 0)
    rows.push_back({"Bad records", fmt::format("{}", report.bad_records)});
  if (result.digest)
    rows.push_back({"Digest of all batches", fmt::format("{:016x}", *result.digest)});
  return rows;
}

Rows settings_of(const BenchRecord& record) {
  const BenchSettings& settings = record.settings;
  const Report& report = record.result.report;
  return {
      {"Dataset", record.dataset},
      {"Records", fmt::format("{}", settings.dataset->size())},
      {"Recipe", record.recipe_name},
      {"Batches of", fmt::format("{} in {}", plural(settings.batch_size, "sample"),
                                 plural(settings.micro_batches, "part"))},
      {"Workers", fmt::format("{}{}", report.workers,
                              report.workers_bound ? ", bound to their NUMA node" : ", not bound")},
      {"Prefetch", plural(settings.prefetch, "host slot")},
      {"Step", step_text(record)},
      {"Device", record.device},
      {"Images on the device", record.convert.empty() ? "as they were made" : record.convert},
      {"Seed", fmt::format("{}", settings.seed)},
      {"Measured",
       fmt::format("{} in {:.2f} s after {} of warm-up",
                   fmt::format("{} batch{}", report.batches, report.batches == 1 ? "" : "es"),
                   report.seconds, settings.warmup)}};
}

PageSection bad_records(const Report& report) {
  HtmlTable table{.title = {}, .columns = {"Record", "Key", "What is wrong"}, .text_columns = 2};
  for (const BadRecord& record : report.bad_record_list)
    table.rows.push_back({fmt::format("{}", record.index), record.key, record.reason});
  return {
      .title = "Bad records",
      .text = fmt::format("The first {} of {}.", report.bad_record_list.size(), report.bad_records),
      .body = to_html(table)};
}

PageSection circumstances(const BenchRecord& record) {
  std::string recipe =
      fmt::format("<details><summary>The recipe as a program</summary><pre>{}</pre></details>\n",
                  escape(record.settings.recipe.to_json()));
  return {.title = "Settings and machine",
          .body = "<div class=\"columns\"><div>" +
                  to_html(HtmlTable{.title = "Settings", .rows = settings_of(record)}) + recipe +
                  "</div><div>" + to_html(machine_table(record.machine, record.result.steal)) +
                  "</div></div>\n"};
}

}  // namespace

std::string to_html(const BenchRecord& record, const Trace& trace) {
  const BenchResult& result = record.result;
  const Report& report = result.report;
  const TracePicture picture = picture_of(trace);
  const Timeline timeline = draw_timeline(picture);
  const StallPicture stalls = draw_stalls(picture, report);
  HtmlPage page{.title = "millrace bench: " + record.dataset,
                .subject = fmt::format("millrace bench of {}, {} in {:.2f} s", record.dataset,
                                       plural(report.samples, "sample"), report.seconds),
                .verdict = result.verdict.text,
                .advice = result.verdict.advice,
                .numbers = key_numbers(record)};
  page.sections = {
      {.title = "Where each stage's time went",
       .text = "The stage that is busy nearly all the time bounds the run; those before it wait "
               "for room, those behind it for input.",
       .body = draw_stages(report, result.device_idle)},
      {.title = "Timeline", .text = timeline.text, .body = timeline.html},
      {.title = "How long the trainer waited for data", .text = stalls.text, .body = stalls.html},
      {.title = "Further numbers",
       .body =
           to_html(HtmlTable{.title = "Over the measured time", .rows = further_numbers(record)})}};
  if (!report.bad_record_list.empty()) page.sections.push_back(bad_records(report));
  page.sections.push_back(circumstances(record));
  return to_html(page);
}

}  // namespace millrace::cli
