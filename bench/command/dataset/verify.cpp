// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/runtime.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/console/command.h"
#include "command/console/dataset_option.h"
#include "command/console/interrupt.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/streams.h"
#include "command/dataset/bad_records.h"
#include "command/dataset/verify_run.h"
#include "command/run/pipeline_options.h"
#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

struct VerifyOptions {
  DatasetArguments dataset;
  bool quick = false;
  bool deep = false;
  std::size_t limit = max_bad_records_shown;
  std::string json;
  unsigned workers = 0;
  DecodeLimits limits;
};

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

bool fingerprint_differs(const VerifyResult& result) {
  return result.found_fingerprint && result.found_fingerprint != result.fingerprint;
}

/// The checks that were made on each record.
std::string done_text(const VerifyOptions& options, const VerifyResult& result) {
  std::string text = bytes_text(static_cast<double>(result.bytes)) + " read, ";
  text += result.checksums_compared == 0 && result.checked > result.bad.size()
              ? "without checksums"
              : "checksums compared";
  if (options.quick)
    text += ", nothing decoded (--quick)";
  else if (result.decoded > 0)
    text += fmt::format(", {} decoded{}", count_text(result.decoded, "image"),
                        result.repaired > 0 ? fmt::format(" ({} repaired)", result.repaired) : "");
  else if (result.checked > result.bad.size())
    text += ", no field \"image\" to decode";
  if (options.deep)
    text += fmt::format(", the seek index of {} verified",
                        count_text(result.indices_verified, "image"));
  if (result.restored > 0)
    text += fmt::format(", {} restored", count_text(result.restored, "JPEG file"));
  if (result.found_fingerprint)
    text += fingerprint_differs(result) ? ", fingerprint differs" : ", fingerprint matches";
  return text + fmt::format("; {:.1f} s", result.seconds);
}

std::string to_text(const VerifyOptions& options, const Dataset& dataset,
                    const VerifyResult& result) {
  const std::string name = printable(dataset.name());
  std::string text =
      bad_records_text(result.bad, options.limit, "--json FILE lists all, --limit N prints more");
  for (const std::string& table : result.damaged_tables) text += printable(table) + "\n";
  if (fingerprint_differs(result))
    text += fmt::format(
        "the records or their order have changed since they were written: their fingerprint is {}, "
        "the dataset's is {}\n",
        hex(*result.found_fingerprint), hex(*result.fingerprint));
  const std::string done = done_text(options, result);
  if (result.interrupted)
    return text + fmt::format("{}: interrupted after {} of {} records, {} of them bad ({})\n", name,
                              result.checked, result.records, result.bad.size(), done);
  if (result.is_sound()) {
    const std::string which =
        result.records == 1 ? "its 1 record is" : fmt::format("all {} records are", result.records);
    return text + fmt::format("{}: {} sound ({})\n", name, which, done);
  }
  if (result.bad.empty()) return text + fmt::format("{}: damaged ({})\n", name, done);
  return text + fmt::format("{}: {} of {} records {} bad ({})\n", name, result.bad.size(),
                            result.records, result.bad.size() == 1 ? "is" : "are", done);
}

std::string to_json(const VerifyOptions& options, const Dataset& dataset,
                    const VerifyResult& result) {
  using Json = nlohmann::ordered_json;
  Json bad = Json::array();
  for (const BadRecord& record : result.bad)
    bad.push_back({{"index", record.index}, {"key", record.key}, {"reason", record.reason}});
  const auto hex_or_null = [](const std::optional<std::uint64_t>& number) {
    return number ? Json(hex(*number)) : Json();
  };
  const Json json = {{"dataset", dataset.name()},
                     {"sound", result.is_sound() && !result.interrupted},
                     {"records", result.records},
                     {"checked", result.checked},
                     {"interrupted", result.interrupted},
                     {"quick", options.quick},
                     {"deep", options.deep},
                     {"images_decoded", result.decoded},
                     {"images_repaired", result.repaired},
                     {"indices_proved", result.indices_verified},
                     {"files_restored", result.restored},
                     {"bytes", result.bytes},
                     {"seconds", result.seconds},
                     {"fingerprint", hex_or_null(result.fingerprint)},
                     {"fingerprint_found", hex_or_null(result.found_fingerprint)},
                     {"damaged_index_tables", result.damaged_tables},
                     {"bad_records", result.bad.size()},
                     {"bad", bad}};
  return json_text(json);
}

int run_verify(const VerifyOptions& options) {
  check_outputs({options.json}, {});
  const std::shared_ptr<const Dataset> dataset = open_as_given(options.dataset);
  const Interrupt interrupt;
  Runtime runtime({.workers = options.workers});
  const std::vector<std::string> warnings = dataset->facts().warnings;
  for (const std::string& warning : warnings) print_note(warning);
  const VerifyDepth depth = options.quick  ? VerifyDepth::records
                            : options.deep ? VerifyDepth::deep
                                           : VerifyDepth::images;
  const VerifyResult result = verify(dataset, depth, options.limits, runtime, interrupt);
  if (options.json != "-") print_text(to_text(options, *dataset, result));
  if (!options.json.empty()) write_text(options.json, to_json(options, *dataset, result));
  if (result.interrupted) return interrupt.exit_code();
  return result.is_sound() && (!options.deep || warnings.empty()) ? 0 : 1;
}

}  // namespace

Command add_verify(CLI::App& millrace) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* app = millrace.add_subcommand(
      "verify", "Check that a dataset is sound: every record read, compared, decoded");
  add_dataset(*app, options->dataset);
  CLI::Option* quick =
      app->add_flag("--quick", options->quick, "Structure and checksums only; decode nothing");
  app->add_flag("--deep", options->deep,
                "Also verify the stored seek index of each image, by decoding with it and without, "
                "and restore the file of each image that is stored as coefficients")
      ->excludes(quick);
  app->add_option("--limit", options->limit, "Number of bad records to print, default 20")
      ->transform(between(std::uint64_t{0}, UINT64_MAX));
  app->add_option("--json", options->json,
                  "Write everything, with all bad records, as JSON to a file; - prints it instead")
      ->check(output_check(true));
  app->add_option("--workers", options->workers,
                  "Threads that check records; default: one per processor")
      ->transform(between(1, 4096));
  add_decode_limits(*app, options->limits);
  app->footer(
      R"(Reads every record through the pages that lead to it, compares its checksum and decodes its
image. Compares the dataset's fingerprint, which covers all records and their order. An image is bad
if libjpeg reports an error or warns of damaged or missing data, or if the record's width and height
differ from the image's. A few stray bytes before a restart marker or the end of a JPEG are skipped;
such images count as repaired. Bad records are listed with number, key and reason, in their order.
Exit code: 0 if the dataset is sound, else 1.

Examples:
  millrace verify train.lmdb
  millrace verify train.lmdb --quick
  millrace verify train.lmdb --deep
  millrace verify train.lmdb --json bad.json --limit 0)");
  return {app, [options] { return run_verify(*options); }};
}

}  // namespace millrace::cli
