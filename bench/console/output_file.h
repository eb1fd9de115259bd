// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

namespace millrace::cli {

/// Writes `text` to a file, or to standard output for "-". Throws `Error` (`io`) if that fails.
void write_text(const std::filesystem::path& path, const std::string& text);

/// Throws `Error` (`io`) if a file cannot be written, before time is spent on what shall go into
/// it. Empty and "-" are fine.
void check_writable(const std::filesystem::path& path);

/// For an option that takes a file, not standard output.
CLI::Validator file_check();

}  // namespace millrace::cli
