// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <millrace/detail/interrupted.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace millrace {

/// Owner of a file descriptor of the operating system; may be empty.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Calls open(2), repeated while signals interrupt it. On failure the result is empty and `errno`
  /// is set.
  static FileDescriptor open(const char* path, int flags, mode_t mode = 0) {
    return FileDescriptor(retry_interrupted([&] { return ::open(path, flags, mode); }));
  }
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }

 private:
  int number_ = -1;
};

/// Whether an error of open(2) means that the file does not exist.
inline bool names_no_file(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

/// Returns the path that symbolic links lead to; `path` itself if that fails.
inline std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

}  // namespace millrace
