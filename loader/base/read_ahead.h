// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/guarded_map.h"

namespace millrace {

/// Where bytes lie in a file.
struct FileRange {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// Tells the system that these bytes of a file are read soon: of a map, or, where `map` is null, of
/// the open file `file`.
void read_ahead(std::vector<FileRange> ranges, const GuardedMap* map, int file);

}  // namespace millrace
