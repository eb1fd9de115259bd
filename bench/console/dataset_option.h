// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace millrace::cli {

/// A dataset as given on the command line: where it lies and how it is opened.
struct DatasetArguments {
  std::string path{};
  /// `map`, `format`, `images` and `labels` are given; the others are the command's own.
  OpenOptions options{};
};

/// DATASET, --no-map, --format, --images, --labels: what all commands that read a dataset have.
void add_dataset(CLI::App& command, DatasetArguments& arguments);

/// Opens it. Throws as `open_dataset` does.
std::shared_ptr<const Dataset> open_as_given(const DatasetArguments& arguments);

}  // namespace millrace::cli
