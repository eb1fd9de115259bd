// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// Writes `text` to a file, or to standard output for "-". A file that is there is replaced in one
/// step by one that was written beside it. Throws `Error` (`io`) if that fails.
void write_text(const std::filesystem::path& path, std::string_view text);

/// Throws `Error` before time is spent on what shall go into `outputs`: `invalid_argument` for one
/// that is one of `inputs`, a dataset, its shard or index; `io` for one that is no regular file or
/// cannot be written, and where standard output is closed. Empty names and "-" are fine.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs);

/// Throws `Error` (`io`) if no file can be made at `path`, where there is none.
void check_can_create(const std::filesystem::path& path);

/// Throws `Error` (`invalid_argument`) if `output` is the file `input`, by whatever name.
void check_not_input(const std::filesystem::path& output, const std::filesystem::path& input);

/// Whether a file begins as a dataset does, or is the list of one's shards; also an empty file,
/// which is what a pack leaves that was killed at once. False if there is none.
bool is_dataset(const std::filesystem::path& path);

}  // namespace millrace::cli
