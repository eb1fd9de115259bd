// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace millrace::cli {

/// A dataset as given on the command line: its path and the options to open it.
struct DatasetArguments {
  std::string path{};
  /// The options set `map`, `format`, `images` and `labels`; a command sets the others.
  OpenOptions options{};
};

/// Adds the options that all commands with a dataset share: DATASET, --no-map, --format, --images,
/// --labels.
void add_dataset(CLI::App& command, DatasetArguments& arguments);

/// Opens the dataset. Throws as `open_dataset` does.
std::shared_ptr<const Dataset> open_as_given(const DatasetArguments& arguments);

}  // namespace millrace::cli
