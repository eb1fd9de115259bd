// SPDX-License-Identifier: Apache-2.0
#include "measure/bench_rows.h"

#include <fmt/format.h>

#include <chrono>

namespace millrace::cli {
namespace {

constexpr double mega = 1e6;
constexpr double giga = 1e9;

}  // namespace

std::optional<double> copies_of_plain(const BenchRecord& record) {
  const auto& plain = record.beside.plain_copy_bytes_per_second;
  if (!record.result.copies || !plain || *plain <= 0) return std::nullopt;
  return record.result.copies->bytes_per_second / *plain;
}

std::string step_text(const BenchRecord& record) {
  const BenchSettings& settings = record.settings;
  if (!settings.step_work().any()) return "none";
  if (settings.gemm > 0)
    return fmt::format("gemm:{} ({:.3f} ms)", settings.gemm,
                       record.result.device_step_ms.value_or(0));
  return fmt::format("{:.3f} ms{}",
                     std::chrono::duration<double, std::milli>(settings.step).count(),
                     record.step_is_auto ? " (1.25 x the loader's own time)" : "");
}

std::vector<std::pair<std::string, std::string>> device_rows(const BenchRecord& record) {
  const BenchResult& result = record.result;
  const BesideResult& beside = record.beside;
  std::vector<std::pair<std::string, std::string>> rows;
  if (beside.idle_by_synthetic)
    rows.emplace_back("idle by synthetic input",
                      fmt::format("{:.2f}% (beside the same steps without a loader)",
                                  100 * *beside.idle_by_synthetic));
  if (result.copies) {
    std::string text = fmt::format("{:.2f} GB/s", result.copies->bytes_per_second / giga);
    if (const auto share = copies_of_plain(record))
      text += fmt::format(", {:.1f}% of plain copies' {:.2f} GB/s", 100 * *share,
                          *beside.plain_copy_bytes_per_second / giga);
    if (result.copy_hidden)
      text += fmt::format("; {:.1f}% of their time under steps", 100 * *result.copy_hidden);
    rows.emplace_back("copies to the device", text);
  }
  rows.emplace_back(
      "trainer's thread",
      fmt::format("mean {:.1f}   p50 {:.1f}   p99 {:.1f} us of CPU time per batch for the loader",
                  result.consumer.mean_us, result.consumer.p50_us, result.consumer.p99_us));
  if (beside.first_step)
    rows.emplace_back(
        "first step after",
        fmt::format("{:.1f} ms on parts as they come, {:.1f} ms on whole batches: {:.1f} ms saved",
                    beside.first_step->parts_ms, beside.first_step->whole_ms,
                    beside.first_step->whole_ms - beside.first_step->parts_ms));
  std::string memory =
      fmt::format("{:+.1f} MB of the process", static_cast<double>(result.rss_growth) / mega);
  if (result.device_memory_growth)
    memory += fmt::format(", {:+.1f} MB of the device",
                          static_cast<double>(*result.device_memory_growth) / mega);
  rows.emplace_back("memory since warm-up", memory);
  return rows;
}

}  // namespace millrace::cli
