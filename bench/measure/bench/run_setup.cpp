// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/run_setup.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "measure/machine/process.h"
#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

/// Returns a warning if other libraries' decoders took most of the decoding time; else an empty
/// text.
std::string other_decoders_warning(const Report& report) {
  std::uint64_t samples = 0;
  std::uint64_t by_others = 0;
  for (const auto& [decoder_name, count] : report.decoders) {
    samples += count;
    if (!decoder_name.starts_with("millrace")) by_others += count;
  }
  double seconds = 0;
  double of_others = 0;
  std::string slowest;
  double of_slowest = 0;
  for (const auto& [decoder_name, taken] : report.decoder_seconds) {
    seconds += taken;
    if (decoder_name.starts_with("millrace")) continue;
    of_others += taken;
    if (taken > of_slowest) of_slowest = taken, slowest = decoder_name;
  }
  if (!(of_others > seconds / 2)) return "";
  return fmt::format(
      "decoders of other libraries made {} of {} samples and took {:.0f}% of their time, {} most; "
      "millrace's own decoders take baseline and progressive JPEGs",
      by_others, samples, 100 * of_others / seconds, slowest);
}

}  // namespace

std::string setup_text(const RunSetup& setup, const BenchSettings& settings,
                       std::uint64_t records) {
  return fmt::format(
      "{}: {} records, recipe {}, {} workers, batches of {} in {}, prefetch {}, seed {}\n",
      printable(setup.dataset), records, printable(setup.recipe_name),
      settings.pipeline.runtime->workers(), settings.pipeline.batch_size,
      count_text(settings.pipeline.slots.micro_batches, "micro-batch"),
      settings.pipeline.slots.prefetch, settings.pipeline.seed);
}

std::string step_text(const RunSetup& setup, const BenchSettings& settings, double device_step_ms) {
  if (!settings.step_work().any()) return "none";
  if (settings.user_step)
    return fmt::format("the trainer's own ({:.3f} ms)",
                       device_step_ms > 0 ? device_step_ms : milliseconds(settings.step));
  if (settings.gemm > 0) return fmt::format("gemm:{} ({:.3f} ms)", settings.gemm, device_step_ms);
  return fmt::format("{:.3f} ms{}", milliseconds(settings.step),
                     setup.step_is_auto ? " (1.25 x the loader's own time)" : "");
}

std::vector<std::string> warnings_of(const BenchSettings& settings, const Report& report,
                                     double disturbed) {
  std::vector<std::string> warnings = settings.warnings;
  warnings.insert(warnings.end(), report.warnings.begin(), report.warnings.end());
  if (std::string others = other_decoders_warning(report); !others.empty())
    warnings.push_back(std::move(others));
  if (disturbed > disturbed_share)
    warnings.push_back(
        fmt::format("disturbed: other programs took {:.0f}% of the processors while none was left "
                    "over; a quieter machine gives surer results",
                    100 * disturbed));
  return warnings;
}

Figures setup_figures(const RunSetup& setup, const BenchSettings& settings, std::uint64_t records) {
  using Json = Figures::Json;
  Figures figures;
  figures.add("dataset", "Dataset", "{}", setup.dataset);
  figures.key("map", setup.map ? Json(*setup.map) : Json());
  figures.add("records", "Records", "{}", records);
  figures.add("recipe", "Recipe", "{}", setup.recipe_name);
  figures.key("recipe_program", settings.recipe.empty() ? Json() : Json::parse(settings.recipe));
  figures.add("device", "Device", "{}", setup.device);
  figures.add("batch_size", "Batch size", "{}", settings.pipeline.batch_size);
  figures.add("workers", "Workers", "{}", settings.pipeline.runtime->workers());
  figures.add("prefetch", "Prefetch (host slots)", "{}", settings.pipeline.slots.prefetch);
  figures.add("micro_batches", "Micro-batches", "{}", settings.pipeline.slots.micro_batches);
  figures.key("step_ms",
              settings.gemm > 0 || settings.user_step ? Json() : Json(milliseconds(settings.step)));
  figures.key("step_auto", setup.step_is_auto);
  figures.key("batches", settings.batches);
  figures.key("max_seconds", std::chrono::duration<double>(settings.duration).count());
  figures.add("seed", "Seed", "{}", settings.pipeline.seed);
  return figures;
}

}  // namespace millrace::cli
