// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace millrace
