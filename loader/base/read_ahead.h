// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/sigbus_safe_map.h"

namespace millrace {

/// Position of bytes in a file.
struct FileRange {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// Advises the system that these bytes of a file will be read soon. They are read through `map`, or
/// through the open file `file` if `map` is null.
void read_ahead(std::vector<FileRange> ranges, const SigbusSafeMap* map, int file);
/// Advises the system that the file is read in random order, so that it does not read ahead itself.
void expect_random_reads(const SigbusSafeMap* map, int file);

}  // namespace millrace
