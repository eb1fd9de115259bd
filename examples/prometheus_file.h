// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <filesystem>
#include <fstream>
#include <ios>
#include <locale>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

/// A callback of `millrace::measure::ReportFeed` that writes a file in Prometheus' text format
/// (version 0.0.4), as node_exporter's textfile collector reads it. Each report replaces the whole
/// file. The file is renamed into place, so a reader never sees a part of it.
class PrometheusFile {
 public:
  explicit PrometheusFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Adds the report's counts to the totals and writes the file. Throws `std::runtime_error` if the
  /// file cannot be written; the old one remains.
  void operator()(const millrace::Report& delta) {
    const std::string of = "pipeline=\"" + escaped(delta.pipeline) + '"';
    add("millrace_batches_total", of, static_cast<double>(delta.batches));
    add("millrace_samples_total", of, static_cast<double>(delta.samples));
    add("millrace_bad_records_total", of, static_cast<double>(delta.bad_records));
    add("millrace_copied_bytes_total", of, static_cast<double>(delta.copied_bytes));
    add("millrace_stall_seconds_total", of, delta.stall.total_ms / 1000);
    add("millrace_ahead_seconds_total", of, delta.ahead.total_ms / 1000);
    for (const millrace::StageReport& stage : delta.stages)
      add("millrace_stage_busy_seconds_total", of + ",stage=\"" + escaped(stage.name) + '"',
          stage.busy_seconds);

    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.precision(17);
    for (const auto& [name, series] : totals_) {
      text << "# TYPE " << name << " counter\n";
      for (const auto& [labels, value] : series)
        text << name << '{' << labels << "} " << value << '\n';
    }
    const auto gauge = [&](const char* name, double value) {
      text << "# TYPE " << name << " gauge\n" << name << '{' << of << "} " << value << '\n';
    };
    gauge("millrace_ready_batches", delta.ready_batches);
    gauge("millrace_worker_utilization", delta.worker_utilization);
    gauge("millrace_pinned_bytes", static_cast<double>(delta.memory.pinned_bytes));
    gauge("millrace_cache_bytes", static_cast<double>(delta.memory.cache_bytes));
    replace(text.str());
  }

 private:
  void add(const std::string& name, const std::string& labels, double value) {
    totals_[name][labels] += value;
  }

  static std::string escaped(const std::string& label) {
    std::string result;
    for (const char c : label) {
      if (c == '\\' || c == '"') result += '\\';
      result += c == '\n' ? "\\n" : std::string(1, c);
    }
    return result;
  }

  void replace(const std::string& text) const {
    std::filesystem::path part = path_;
    part += ".part";
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + part.string());
    std::error_code failed;
    std::filesystem::rename(part, path_, failed);
    if (failed) throw std::runtime_error(path_.string() + ": " + failed.message());
  }

  std::filesystem::path path_;
  /// By name, then by labels.
  std::map<std::string, std::map<std::string, double>> totals_;
};
