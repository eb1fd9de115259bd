// SPDX-License-Identifier: Apache-2.0
// For the folders of millrace alone; it is not installed.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <ios>

namespace millrace {

/// Makes a system call, which returns -1 with `errno` on failure, until no signal interrupts it
/// (EINTR). Returns its result.
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Opens a stream of a file (std::ifstream, say) as `retry_interrupted` does. If it fails, the
/// stream is not open and `errno` says why. (Reads and writes of such streams are repeated.)
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

/// fopen(3) likewise; null, with `errno`, if it fails.
inline std::FILE* open_stdio(const char* path, const char* mode) {
  std::FILE* file = std::fopen(path, mode);
  while (file == nullptr && errno == EINTR) file = std::fopen(path, mode);
  return file;
}

}  // namespace millrace
