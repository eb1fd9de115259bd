// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/dataset/pack_run.h"
#include "command/dataset/writing_options.h"
#include "command/run/pipeline_options.h"

namespace millrace::cli {

Command add_recode(CLI::App& millrace) {
  auto options = std::make_shared<PackOptions>();
  options->store = StoredForm::coefficients;
  options->done = "recoded";
  options->index = std::nullopt;
  CLI::App* app = millrace.add_subcommand(
      "recode", "Store the JPEGs of a dataset as coefficients, or these as JPEGs again");
  app->add_option_function<std::string>(
         "DATASET", [options](const std::string& path) { options->inputs = {path}; },
         "The dataset to recode; it stays as it is")
      ->required()
      ->check(input_check());
  app->add_option("OUT", options->out, "The dataset file to write")
      ->required()
      ->check(output_check(false));
  add_store(*app, *options, "Form of the images in OUT")->default_str("coefficients");
  add_writing(*app, *options);
  add_decode_limits(*app, options->limits);
  app->footer(
      R"(Coefficients take 1.3 times the bytes of JPEGs. They are decoded several times as fast,
with the same pixels. Each image is checked by restoring its file byte for byte, and by decoding
both forms if libjpeg-turbo decodes the JPEG. A JPEG for which that fails stays as it is, in the
same dataset. All other fields and images that are not JPEGs are copied. With --store jpeg all files
are restored as they were packed. `millrace inspect --record N --out FILE` restores one of them.

An interrupted recode is continued by the same command with --resume.

Examples:
  millrace recode train.lmdb fast.lmdb
  millrace recode fast.lmdb again.lmdb --store jpeg)");
  return {app, [options] { return run_pack(*options); }};
}

}  // namespace millrace::cli
