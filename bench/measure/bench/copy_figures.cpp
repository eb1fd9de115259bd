// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/copy_figures.h"

#include <fmt/format.h>

#include <string>

#include "measure/bench/bench_output.h"

namespace millrace::cli {
namespace {

using Json = Figures::Json;

constexpr double giga = 1e9;

std::optional<double> share_of_plain(const std::optional<CopyRate>& copies,
                                     std::optional<double> plain) {
  if (!copies || !plain || *plain <= 0) return std::nullopt;
  return copies->bytes_per_second / *plain;
}

}  // namespace

void add_copy_figures(Figures& figures, const BenchRecord& record) {
  const auto& copies = record.result.copies;
  const auto& hidden = record.result.copy_hidden;
  const PlainCopyRates& plain = record.baselines.plain_copies;
  const PlainCopyRates& by_driver = record.baselines.driver_copies;
  figures.key("h2d_gb_per_second", copies ? Json(copies->bytes_per_second / giga) : Json());
  struct Rate {
    const char* key;
    const char* share_key;
    const std::optional<CopyRates>& rates;
    double CopyRates::*rate;
  };
  constexpr auto at_once = &CopyRates::at_once;
  constexpr auto paced = &CopyRates::paced;
  for (const Rate& one : {
           Rate{"plain_h2d_gb_per_second", "h2d_percent_of_plain", plain.idle, at_once},
           Rate{"plain_h2d_busy_gb_per_second", "h2d_percent_of_plain_busy", plain.busy, at_once},
           Rate{"plain_h2d_malloc_host_gb_per_second", "h2d_percent_of_plain_malloc_host",
                by_driver.idle, at_once},
           Rate{"plain_h2d_malloc_host_busy_gb_per_second", "h2d_percent_of_plain_malloc_host_busy",
                by_driver.busy, at_once},
           Rate{"paced_h2d_gb_per_second", "h2d_percent_of_paced", plain.idle, paced},
           Rate{"paced_h2d_busy_gb_per_second", "h2d_percent_of_paced_busy", plain.busy, paced},
           Rate{"paced_h2d_malloc_host_gb_per_second", "h2d_percent_of_paced_malloc_host",
                by_driver.idle, paced},
           Rate{"paced_h2d_malloc_host_busy_gb_per_second", "h2d_percent_of_paced_malloc_host_busy",
                by_driver.busy, paced},
           Rate{"paced_h2d_under_steps_gb_per_second", "h2d_percent_of_paced_under_steps",
                plain.under_steps, paced},
           Rate{"paced_h2d_malloc_host_under_steps_gb_per_second",
                "h2d_percent_of_paced_malloc_host_under_steps", by_driver.under_steps, paced},
       }) {
    const auto rate = one.rates ? std::optional((*one.rates).*one.rate) : std::nullopt;
    figures.key(one.key, rate ? Json(*rate / giga) : Json());
    figures.key(one.share_key, percent_json(share_of_plain(copies, rate)));
  }
  figures.key("copy_hidden_percent", percent_json(hidden));
  if (!copies) return;
  const auto beside = [&](double rate, const char* format) {
    return fmt::format(fmt::runtime(format), 100 * share_of_plain(copies, rate).value_or(0),
                       rate / giga);
  };
  const auto both = [&](const CopyRates& rates) {
    return beside(rates.at_once, "{:.1f}% of {:.2f} GB/s") +
           beside(rates.paced, ", paced {:.1f}% of {:.2f} GB/s");
  };
  std::string text = fmt::format("{:.2f} GB/s", copies->bytes_per_second / giga);
  if (hidden) text += fmt::format("; {:.1f}% of their time under steps", 100 * *hidden);
  figures.row("copies to the device", text);
  if (plain.idle) figures.row("of plain copies", both(*plain.idle));
  if (plain.busy) figures.row("of plain, busy workers", both(*plain.busy));
  if (by_driver.idle) figures.row("of cudaMallocHost", both(*by_driver.idle));
  if (by_driver.busy) figures.row("of that, busy workers", both(*by_driver.busy));
  if (plain.under_steps) figures.row("of plain, under steps", both(*plain.under_steps));
  if (by_driver.under_steps) figures.row("of driver's, under steps", both(*by_driver.under_steps));
}

}  // namespace millrace::cli
