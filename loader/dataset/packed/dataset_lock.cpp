// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/dataset_lock.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/error.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace millrace {
namespace {

[[noreturn]] void throw_io(const std::filesystem::path& path, const char* what, int reason) {
  throw Error(ErrorCode::io, path.string() + " cannot be " + what + ": " + errno_text(reason));
}

[[noreturn]] void throw_being_written(const std::filesystem::path& path) {
  throw Error(ErrorCode::already_exists,
              path.string() + " is being written by another writer at this moment");
}

void lock(const FileDescriptor& file, const std::filesystem::path& path) {
  if (retry_interrupted([&] { return flock(file.get(), LOCK_EX | LOCK_NB); }) == 0) return;
  const int reason = errno;
  if (reason == EWOULDBLOCK) throw_being_written(path);
  throw Error(ErrorCode::io,
              path.string() + " cannot be locked (flock: " + errno_text(reason) +
                  "); write to another file system and copy the dataset, or mount this one with "
                  "locks (Lustre: -o flock)");
}

bool is_at(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat there {};
  return fstat(file.get(), &opened) == 0 && stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

/// Locks a newly created file. Deletes the file if its file system does not support locks.
void lock_new(const FileDescriptor& file, const std::filesystem::path& path) {
  try {
    lock(file, path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io && is_at(file, path)) unlink(path.c_str());
    throw;
  }
}

}  // namespace

FileDescriptor lock_existing(const std::filesystem::path& path) {
  while (true) {
    FileDescriptor file = FileDescriptor::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (!file && errno == ENOENT) return file;
    if (!file) throw_io(path, "opened", errno);
    if (!std::filesystem::is_regular_file(path))
      throw Error(ErrorCode::io, path.string() + " cannot be replaced: it is not a regular file");
    lock(file, path);
    // Another writer may have replaced the file before we got the lock.
    if (is_at(file, path)) return file;
  }
}

FileDescriptor create_locked(const std::filesystem::path& path) {
  FileDescriptor file =
      FileDescriptor::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (!file) {
    const int reason = errno;
    if (reason != EEXIST) throw_io(path, "created", reason);
    if (is_being_written(path)) throw_being_written(path);
    throw Error(ErrorCode::already_exists,
                path.string() + " exists already; take another name, or have it replaced");
  }
  lock_new(file, path);
  // Another writer may have deleted the new file, because it looked like one left by an interrupted
  // writer.
  if (!is_at(file, path)) throw_being_written(path);
  return file;
}

std::filesystem::path replacement_path(const std::filesystem::path& path) {
  return path.string() + ".index.new";
}

FileDescriptor replace_locked(const std::filesystem::path& path, std::string_view contents) {
  const std::filesystem::path temporary = replacement_path(path);
  FileDescriptor file =
      FileDescriptor::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (!file) throw_io(temporary, "created", errno);
  lock_new(file, temporary);
  const auto check = [&](bool done) {
    if (done) return;
    const int reason = errno == 0 ? ENOSPC : errno;
    unlink(temporary.c_str());
    throw_io(path, "written", reason);
  };
  errno = 0;
  for (std::size_t written = 0; written < contents.size();) {
    const ssize_t count = retry_interrupted(
        [&] { return write(file.get(), contents.data() + written, contents.size() - written); });
    check(count > 0);
    written += static_cast<std::size_t>(count);
  }
  check(retry_interrupted([&] { return fsync(file.get()); }) == 0);
  check(rename(temporary.c_str(), path.c_str()) == 0);
  sync_folder_of(path);
  return file;
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (const FileDescriptor entries =
          FileDescriptor::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      entries)
    retry_interrupted([&] { return fsync(entries.get()); });
}

void throw_incomplete(const std::filesystem::path& path, std::uint64_t committed) {
  const std::string records =
      std::to_string(committed) + (committed == 1 ? " record was" : " records were");
  throw Error(ErrorCode::incomplete,
              is_being_written(path)
                  ? path.string() + " is incomplete: it is being written at this moment (" +
                        records + " committed so far); wait for its end"
                  : path.string() + " is incomplete: its packing was interrupted after " + records +
                        " committed; go on with it (`millrace pack --resume`) or pack it again "
                        "(`--force`)");
}

bool is_being_written(const std::filesystem::path& path) {
  const FileDescriptor file = FileDescriptor::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return file && retry_interrupted([&] { return flock(file.get(), LOCK_SH | LOCK_NB); }) != 0 &&
         errno == EWOULDBLOCK;
}

}  // namespace millrace
