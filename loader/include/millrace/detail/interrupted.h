// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <ios>

namespace millrace {

/// Repeats a system call while signals interrupt it (EINTR). The call returns -1 and sets `errno`
/// on failure. Returns the call's result.
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Opens a file stream (std::ifstream, for example), and retries like `retry_interrupted`. On
/// failure the stream is not open and `errno` has the reason. (The standard library itself repeats
/// reads and writes of file streams.)
template <typename Stream>
Stream open_stream(const std::filesystem::path& path, std::ios::openmode mode) {
  Stream stream;
  do {
    stream.clear();
    errno = 0;
    stream.open(path, mode);
  } while (!stream.is_open() && errno == EINTR);
  return stream;
}

/// Does the same with fopen(3). Returns null and sets `errno` on failure.
inline std::FILE* open_stdio(const char* path, const char* mode) {
  std::FILE* file = std::fopen(path, mode);
  while (file == nullptr && errno == EINTR) file = std::fopen(path, mode);
  return file;
}

}  // namespace millrace
