// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "measure/diagnose/diagnose_output.h"
#include "measure/page/page.h"
#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

Section epoch_section(const DiagnoseRecord& record) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  double from = 0;
  for (const EpochShare& part : record.account.parts) {
    rows.push_back({{"name", names_of(part.part).row},
                    {"note", duration_text(part.batch_ms) + " per batch"},
                    {"from", from},
                    {"share", part.share},
                    {"lost", part.part != EpochPart::compute}});
    from += part.share;
  }
  return {
      .title = "Where an epoch's time goes",
      .text = "Each part is the difference between two phases. In the red parts the device waits.",
      .chart = make_chart("shares", {{"rows", rows}}),
      .tables = {{.title = "An epoch in numbers",
                  .head = {"", "ms per batch", "95% noise", "of an epoch", "s per epoch", ""},
                  .rows = part_rows(record),
                  .text_columns = 1}}};
}

}  // namespace

std::string to_html(const DiagnoseRecord& record) {
  const BenchSettings& bench = record.settings.bench;
  const StallAccount& account = record.account;
  Page page{.title = "millrace diagnose: " + record.dataset,
            .subject = fmt::format("millrace diagnose of {}, {}", record.dataset,
                                   count_text(record.settings.rounds, "round")),
            .verdict = capitalised(record.verdict.text),
            .advice = capitalised(record.verdict.advice),
            .warnings = warnings_of(record),
            .numbers = {{.name = "A batch in an epoch",
                         .value = duration_text(account.batch_ms),
                         .detail = "a step of " + step_text(record, bench)},
                        {.name = "The device waits",
                         .value = percent_text(account.waiting()),
                         .detail = "of an epoch"},
                        {.name = "Device idle",
                         .value = percent_text(record.result.device_idle),
                         .detail = "with a warm cache, by its stream"}},
            .sections = {epoch_section(record)}};
  page.sections.push_back({.title = "How it was measured",
                           .tables = {{.title = "Phases, mean and standard deviation",
                                       .head = {"Phase", "ms per batch", "deviation"},
                                       .rows = phase_rows(record)}},
                           .list = remarks(record)});
  page.sections.push_back(
      {.title = "Settings and machine",
       .tables = {{.title = "Settings",
                   .rows = setup_figures(record, bench, record.result.records).rows()},
                  {.title = "Machine", .rows = fact_rows(record.machine)}}});
  return page_html(page);
}

}  // namespace millrace::cli
