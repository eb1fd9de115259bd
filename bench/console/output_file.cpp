// SPDX-License-Identifier: Apache-2.0
#include "console/output_file.h"

#include <fmt/core.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "console/streams.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, ErrorCode code, const std::string& reason) {
  throw Error(code, path.string() + ": cannot be written: " + reason);
}

void check_output(const fs::path& path, const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (!fs::status_known(there)) refuse(path, ErrorCode::io, error.message());
  if (fs::is_directory(there)) refuse(path, ErrorCode::io, "it is a folder");
  if (fs::exists(there) && !fs::is_regular_file(there))
    refuse(path, ErrorCode::io, "it is no regular file");
  for (const std::string& input : inputs) check_not_input(path, input);
  if (fs::exists(there) && fs::file_size(path) > 0 && is_dataset(path))
    refuse(path, ErrorCode::invalid_argument, "it is a dataset");
  const fs::path file = fs::exists(there) ? fs::canonical(path) : path;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (access(folder.c_str(), W_OK) != 0 || (fs::exists(there) && access(file.c_str(), W_OK) != 0))
    refuse(path, ErrorCode::io, std::strerror(errno));
}

}  // namespace

void write_text(const fs::path& path, std::string_view text) {
  if (path == "-") {
    print_bytes(text);
    return;
  }
  const bool is_there = fs::exists(path);
  const fs::path file = is_there ? fs::canonical(path) : path;
  const fs::path beside = fmt::format("{}.{}.new", file.string(), getpid());
  std::ofstream out(beside, std::ios::trunc | std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  std::error_code ignored;
  if (is_there) fs::permissions(beside, fs::status(file).permissions(), ignored);
  if (out && std::rename(beside.c_str(), file.c_str()) == 0) return;
  const std::string reason = std::strerror(errno);
  fs::remove(beside, ignored);
  refuse(path, ErrorCode::io, reason);
}

void check_outputs(const std::vector<std::string>& outputs,
                   const std::vector<std::string>& inputs) {
  for (const std::string& output : outputs) check_output(output, inputs);
}

void check_not_input(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (fs::equivalent(output, input, ignored))
    refuse(output, ErrorCode::invalid_argument, "the command reads it");
}

bool is_dataset(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  if (file.peek() == '{')
    return read_text(file, most_bytes).find("\"millrace_shards\"") != std::string::npos;
  // LMDB's mark lies behind the header of the first page.
  const std::string begin = read_text(file, 20);
  return begin.empty() || begin.substr(0, 20).ends_with("\xde\xc0\xef\xbe");
}

}  // namespace millrace::cli
