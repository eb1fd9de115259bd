// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "command/dataset/pack_run.h"

namespace millrace::cli {

/// Adds the options that say how `pack` and `recode` write OUT: --force, --resume, --shards,
/// --shard-bytes, --commit-bytes, --skip-bad and --workers. `options` must outlive the parsing.
void add_writing(CLI::App& app, PackOptions& options);

/// Adds --store.
CLI::Option* add_store(CLI::App& app, PackOptions& options, const std::string& text);

}  // namespace millrace::cli
