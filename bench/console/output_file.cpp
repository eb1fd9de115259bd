// SPDX-License-Identifier: Apache-2.0
#include "console/output_file.h"

#include <fmt/core.h>
#include <millrace/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace millrace::cli {

void write_text(const std::filesystem::path& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    throw Error(ErrorCode::io, path.string() + ": cannot be written: " + std::strerror(errno));
}

void check_writable(const std::filesystem::path& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (access((std::filesystem::exists(path) ? path : folder).c_str(), W_OK) != 0)
    throw Error(ErrorCode::io, path.string() + ": cannot be written: " + std::strerror(errno));
  if (std::filesystem::is_directory(path))
    throw Error(ErrorCode::io, path.string() + ": cannot be written: it is a folder");
}

CLI::Validator file_check() {
  return CLI::Validator(
      [](const std::string& path) {
        return path.empty() || path == "-" ? "must be a file to write, not \"" + path + "\""
                                           : std::string();
      },
      "");
}

}  // namespace millrace::cli
