// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/errno_text.h>
#include <millrace/detail/replace_file.h>
#include <millrace/error.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <system_error>

#include "base/file_descriptor.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Follows symbolic links, also to a file that does not exist.
fs::path target_of(fs::path path) {
  constexpr int max_links = 40;
  std::error_code error;
  if (fs::path file = fs::canonical(path, error); !error) return file;
  for (int link = 0; link < max_links && fs::is_symlink(path, error); ++link) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;
  }
  return path;
}

fs::path new_path_beside(const fs::path& file) {
  return file.string() + "." + std::to_string(::getpid()) + ".new";
}

[[noreturn]] void throw_write_error(const fs::path& path, int error) {
  throw Error(ErrorCode::io, path.string() + ": cannot be written: " + errno_text(error));
}

/// Writes the whole text. Returns 0 or the error number.
int write_all(const FileDescriptor& file, std::string_view text) {
  while (!text.empty()) {
    const auto written =
        retry_interrupted([&] { return ::write(file.get(), text.data(), text.size()); });
    if (written <= 0) return written < 0 ? errno : EIO;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

fs::path temporary_path_of(const fs::path& path) { return new_path_beside(target_of(path)); }

void replace_file(const fs::path& path, std::string_view text) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    const FileDescriptor file = FileDescriptor::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (!file) throw_write_error(path, errno);
    if (const int error = write_all(file, text)) throw_write_error(path, error);
    return;
  }
  // Renaming needs permission for the folder only, so permission for the file is checked here.
  if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    throw_write_error(path, errno);
  const fs::path target = target_of(path);
  const fs::path fresh = new_path_beside(target);
  ::unlink(fresh.c_str());  // left by a killed process with the same process id
  const FileDescriptor file =
      FileDescriptor::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (!file) throw_write_error(path, errno);
  int error = write_all(file, text);
  if (error == 0 && exists) static_cast<void>(::fchmod(file.get(), old.st_mode & 07777));
  if (error == 0 && retry_interrupted([&] { return ::fsync(file.get()); }) != 0) error = errno;
  if (error == 0 && ::rename(fresh.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(fresh.c_str());
  throw_write_error(path, error);
}

}  // namespace millrace
