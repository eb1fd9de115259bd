// SPDX-License-Identifier: Apache-2.0
#include "command/console/output_file.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/replace_file.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "command/console/streams.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, ErrorCode code, const std::string& reason) {
  throw Error(code, path.string() + ": cannot be written: " + reason);
}

/// Tries to create a file that does not exist yet, and deletes it again. Returns 0 or the error
/// number.
int try_to_create(const fs::path& path) {
  const int created = retry_interrupted(
      [&] { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); });
  if (created < 0) return errno;
  close(created);
  unlink(path.c_str());
  return 0;
}

void check_output(const fs::path& path, const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (!fs::status_known(there)) refuse(path, ErrorCode::io, error.message());
  if (fs::is_directory(there)) refuse(path, ErrorCode::io, "it is a folder");
  if (fs::exists(there) && !fs::is_regular_file(there))
    refuse(path, ErrorCode::io, "it is not a regular file");
  for (const std::string& input : inputs) check_not_input(path, input);
  if (fs::exists(there) && fs::file_size(path) > 0 && is_dataset(path))
    refuse(path, ErrorCode::invalid_argument, "it is a dataset");
  if (is_hints_file(path))
    refuse(path, ErrorCode::invalid_argument, "it is the index of a dataset");
  if (fs::exists(there) && access(path.c_str(), W_OK) != 0)
    refuse(path, ErrorCode::io, errno_text(errno));
  if (const int reason = try_to_create(temporary_path_of(path)))
    refuse(path, ErrorCode::io, errno_text(reason));
}

}  // namespace

void write_text(const fs::path& path, std::string_view text) {
  if (path == "-") {
    print_bytes(text);
    return;
  }
  replace_file(path, text);
}

void check_outputs(const std::vector<std::string>& outputs,
                   const std::vector<std::string>& inputs) {
  check_can_print();
  for (const std::string& output : outputs) check_output(output, inputs);
}

void check_can_create(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(path, ignored)) && !fs::exists(path, ignored))
    throw Error(ErrorCode::invalid_argument,
                path.string() + " is a symbolic link to " +
                    fs::read_symlink(path, ignored).string() +
                    ", which does not exist; remove the link or make its target");
  if (const int reason = try_to_create(path))
    throw Error(ErrorCode::io, path.string() + " cannot be created: " + errno_text(reason));
}

void check_not_input(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (fs::equivalent(output, input, ignored))
    refuse(output, ErrorCode::invalid_argument, "the command reads it");
}

bool is_dataset(const fs::path& path) {
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  if (!file && errno == ENOENT) return false;
  if (!file) throw Error(ErrorCode::io, path.string() + " cannot be read: " + errno_text(errno));
  constexpr std::size_t max_bytes = std::size_t{64} << 20;
  if (file.peek() == '{')
    return read_text(file, max_bytes).find("\"millrace_shards\"") != std::string::npos;
  // LMDB's magic number follows the header of the first page. The header's size differs in 32-bit
  // programs and in LMDB 1.0.
  const std::string begin = read_text(file, 28);
  if (begin.empty()) return true;
  for (const std::size_t header_bytes : {16UL, 12UL, 24UL})
    if (begin.size() >= header_bytes + 4 && begin.substr(header_bytes, 4) == "\xde\xc0\xef\xbe")
      return true;
  return false;
}

}  // namespace millrace::cli
