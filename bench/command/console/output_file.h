// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// Writes `text` to a file, or to standard output for "-". An existing file is replaced in one
/// step: the new one is written beside it and renamed. Throws `Error` (`io`) if that fails.
void write_text(const std::filesystem::path& path, std::string_view text);

/// Checks `outputs` before a command spends time on their content. Throws `Error`:
/// `invalid_argument` for an output that is one of `inputs`, a dataset, a shard or an index; `io`
/// for an output that is not a regular file or cannot be written, and if standard output is closed.
/// Empty names and "-" pass.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs);

/// Throws `Error` if a file cannot be created at `path`, where no file exists yet: `io`, or
/// `invalid_argument` for a symbolic link whose target does not exist.
void check_can_create(const std::filesystem::path& path);

/// Throws `Error` (`invalid_argument`) if `output` and `input` are the same file under any name.
void check_not_input(const std::filesystem::path& output, const std::filesystem::path& input);

/// Whether a file begins as a dataset or as a list of shards. True for an empty file, which an
/// early killed pack leaves. False if the file does not exist.
bool is_dataset(const std::filesystem::path& path);

}  // namespace millrace::cli
