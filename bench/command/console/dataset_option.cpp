// SPDX-License-Identifier: Apache-2.0
#include "command/console/dataset_option.h"

#include "command/console/option_checks.h"

namespace millrace::cli {

void add_dataset(CLI::App& command, DatasetArguments& arguments) {
  command.add_option("DATASET", arguments.path, "The dataset")->required()->check(input_check());
  command.add_flag_callback(
      "--no-map", [&arguments] { arguments.options.map = false; },
      "Read the dataset's files with pread() instead of mapping them");
  const auto name = [&command](const char* option, std::string& value, const char* text) {
    return command.add_option(option, value, text)->type_name("NAME")->check(input_check());
  };
  name("--format", arguments.options.format,
       "Open it as this format, instead of trying each format in turn");
  CLI::Option* images = name("--images", arguments.options.images,
                             "Database of the images, in an LMDB file with several databases");
  name("--labels", arguments.options.labels, "Database of their labels")->needs(images);
}

std::shared_ptr<const Dataset> open_as_given(const DatasetArguments& arguments) {
  return open_dataset(arguments.path, arguments.options);
}

}  // namespace millrace::cli
