// SPDX-License-Identifier: Apache-2.0
#include "dataset_lock.h"

#include <fcntl.h>
#include <millrace/error.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace millrace {
namespace {

[[noreturn]] void throw_io(const std::filesystem::path& path, const char* what, int reason) {
  throw Error(ErrorCode::io, path.string() + " cannot be " + what + ": " + std::generic_category().message(reason));
}

[[noreturn]] void throw_being_written(const std::filesystem::path& path) {
  throw Error(ErrorCode::already_exists, path.string() + " is being written by another writer at this moment");
}

void lock(const FileDescriptor& file, const std::filesystem::path& path) {
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) throw_being_written(path);
  throw_io(path, "locked", errno);
}

bool is_at(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat there {};
  return fstat(file.get(), &opened) == 0 && stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

/// The file at `path` with its lock taken; none where there is no file.
FileDescriptor lock_existing(const std::filesystem::path& path) {
  while (true) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno == ENOENT) return file;
    if (!file) throw_io(path, "replaced", errno);
    lock(file, path);
    // Another writer may have put a file of its own there before we had the lock.
    if (is_at(file, path)) return file;
  }
}

}  // namespace

FileDescriptor create_locked(const std::filesystem::path& path, bool overwrite) {
  FileDescriptor old;
  if (overwrite) {
    // Held until the new file is locked, so that of two that replace it at once one finds the other.
    old = lock_existing(path);
    if (old && unlink(path.c_str()) != 0) throw_io(path, "replaced", errno);
  }
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) {
    const int reason = errno;
    if (reason != EEXIST) throw_io(path, "created", reason);
    if (is_being_written(path)) throw_being_written(path);
    throw Error(ErrorCode::already_exists, path.string() + " exists already; take another name, or have it replaced");
  }
  lock(file, path);
  return file;
}

bool is_being_written(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace millrace
