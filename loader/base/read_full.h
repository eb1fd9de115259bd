// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/file_descriptor.h"

namespace millrace {

/// Fills `to` from an offset of a file. Returns the number of bytes read. If it is less than
/// `to.size()`, `errno` has the reason, or is 0 at the end of the file.
inline std::size_t read_full(int file, std::uint64_t offset, std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t read =
        ::pread(file, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (read < 0 && errno == EINTR) continue;
    if (read == 0) errno = 0;
    if (read <= 0) break;
    done += static_cast<std::size_t>(read);
  }
  return done;
}

/// Text of the error that a file cannot be read at an offset.
inline std::string unreadable_text(const std::string& name, std::uint64_t offset,
                                   const std::string& reason) {
  return name + " cannot be read at byte " + std::to_string(offset) + ": " + reason;
}

/// Whether a file begins with the magic number of a format; false if it cannot be read.
inline bool begins_with(const std::filesystem::path& path, const std::array<char, 8>& magic) {
  const FileDescriptor file = FileDescriptor::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::array<char, 8> first{};
  return file &&
         read_full(file.get(), 0, std::as_writable_bytes(std::span(first))) == first.size() &&
         first == magic;
}

}  // namespace millrace
