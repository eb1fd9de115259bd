// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <millrace/dataset.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/error.h>
#include <millrace/runtime.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/console/command.h"
#include "command/console/dataset_option.h"
#include "command/console/interrupt.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/streams.h"
#include "command/dataset/inspect_output.h"
#include "command/dataset/inspect_survey.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

struct InspectOptions {
  DatasetArguments dataset{.options = {.verify_checksums = false}};
  std::optional<std::uint64_t> record;
  std::string out;
  bool force = false;
  std::uint64_t sample = 0;
  std::string json;
  unsigned workers = 0;
};

/// Returns the reason why the record's bytes are corrupt; empty if the checksum matches.
std::string fault_of(DatasetArguments dataset, std::uint64_t index) {
  dataset.options.verify_checksums = true;
  try {
    (void)open_as_given(dataset)->make_reader()->read(index);
    return {};
  } catch (const Error& error) {
    return error.reason();
  }
}

int inspect_record(const InspectOptions& options, const Dataset& dataset) {
  const auto reader = dataset.make_reader();
  const std::uint64_t index = *options.record;
  RecordView view{.record = reader->read(index),
                  .key = dataset.key(index),
                  .stored = dataset.stored_record(index)};
  view.fault = fault_of(options.dataset, index);
  if (view.record.has("image")) {
    const Status read = read_image_info(view.record["image"], view.image.emplace());
    if (!read.is_ok()) {
      view.image.reset();
      view.no_image = read.reason();
    }
  }
  // Only one result is written to standard output.
  if (options.out != "-" && options.json != "-") print_text(to_text(dataset, view));
  if (!options.json.empty()) write_text(options.json, to_json(dataset, view));
  if (!options.out.empty()) {
    std::span<const std::byte> image = view.record["image"];
    std::vector<std::byte> file;
    if (image_kind(image) == ImageKind::coefficients) {
      const Status restored = JpegRecoder(std::make_shared<DecodeBudget>()).restore(image, file);
      if (!restored.is_ok())
        throw Error(ErrorCode::bad_record, fmt::format("record {} ({}): {}", index,
                                                       printable(view.key), restored.reason()));
      image = file;
    }
    write_text(options.out, {reinterpret_cast<const char*>(image.data()), image.size()});
    if (options.out != "-" && options.json != "-")
      print_text(fmt::format("wrote {} bytes of image to {}\n", image.size(), options.out));
  }
  if (const Status intact = reader->intact(); !intact.is_ok())
    throw Error(ErrorCode::bad_record,
                fmt::format("record {} ({}): {}", index, printable(view.key), intact.reason()));
  if (view.fault.empty()) return 0;
  print_note(fmt::format("{}: record {} ({}) is damaged: {}; pack the dataset again",
                         dataset.name(), index, view.key, view.fault));
  return 1;
}

int inspect_all(const InspectOptions& options, const std::shared_ptr<const Dataset>& dataset) {
  const Interrupt interrupt;
  Runtime runtime({.workers = options.workers});
  const Survey found = survey(dataset, options.sample, runtime, interrupt);
  if (options.json != "-") print_text(to_text(*dataset, found));
  if (!options.json.empty()) write_text(options.json, to_json(*dataset, found));
  return found.interrupted ? interrupt.exit_code() : 0;
}

}  // namespace

Command add_inspect(CLI::App& millrace) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* app =
      millrace.add_subcommand("inspect", "Show the contents of a dataset, or one of its records");
  add_dataset(*app, options->dataset);
  CLI::Option* record =
      app->add_option("--record", options->record, "Show this record, from 0, instead of the whole")
          ->transform(between(std::uint64_t{0}, UINT64_MAX));
  CLI::Option* out =
      app->add_option("--out", options->out,
                      "Write the record's image file to a file, restored if its coefficients are "
                      "stored; - is stdout")
          ->needs(record)
          ->check(output_check(true));
  app->add_flag("--force", options->force, "Replace the file of --out if it exists")->needs(out);
  app->add_option("--sample", options->sample,
                  "Read this many records, spread evenly, instead of all")
      ->transform(between(std::uint64_t{1}, UINT64_MAX))
      ->excludes(record);
  app->add_option("--json", options->json,
                  "Write everything as JSON to a file; - prints it instead of the tables")
      ->check(output_check(true));
  app->add_option("--workers", options->workers,
                  "Threads that read records; default: one per processor")
      ->transform(between(1, 4096));
  app->callback([options] {
    if (options->out == "-" && options->json == "-")
      throw CLI::ValidationError("--out - and --json - cannot both have stdout");
  });
  app->footer(
      R"(Counts records and classes, and shows the distribution of bytes, sizes, quality, chroma
subsampling and scan type. It reads only the images' headers: it decodes no pixels and compares no
checksums (`millrace verify` does both). Quality is estimated from the quantisation tables, on
libjpeg's scale; n/a if the encoder has its own tables. With --record the checksum is compared; if
it does not match, the exit code is 1.

Examples:
  millrace inspect train.lmdb
  millrace inspect train.lmdb --sample 10000 --json train.json
  millrace inspect train.lmdb --record 1234
  millrace inspect train.lmdb --record 1234 --out 1234.jpg)");
  return {app, [options] {
            check_outputs({options->json, options->out}, {});
            if (!options->force && options->out != "-" && std::filesystem::exists(options->out))
              throw Error(ErrorCode::already_exists, options->out + " exists; --force replaces it");
            const std::shared_ptr<const Dataset> dataset = open_as_given(options->dataset);
            return options->record ? inspect_record(*options, *dataset)
                                   : inspect_all(*options, dataset);
          }};
}

}  // namespace millrace::cli
