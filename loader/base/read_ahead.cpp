// SPDX-License-Identifier: Apache-2.0
#include "base/read_ahead.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace millrace {

void read_ahead(std::vector<FileRange> ranges, const SigbusSafeMap* map, int file) {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (FileRange& range : ranges) {
    const std::size_t into_page = range.offset % page_bytes;
    range.offset -= into_page;
    range.bytes = (into_page + range.bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  std::ranges::sort(ranges, {}, &FileRange::offset);
  for (std::size_t first = 0; first < ranges.size();) {
    std::uint64_t at = ranges[first].offset, end = at;
    for (; first < ranges.size() && ranges[first].offset <= end; ++first)
      end = std::max(end, ranges[first].offset + ranges[first].bytes);
    // Per call, Linux reads at most as many bytes as the device's largest request, and ignores the
    // rest.
    for (std::size_t bytes = 0; at < end; at += bytes) {
      bytes = std::min(std::size_t{128} << 10, end - at);
      if (map != nullptr)
        madvise(const_cast<std::byte*>(map->bytes().data() + at), bytes, MADV_WILLNEED);
      else
        posix_fadvise(file, static_cast<off_t>(at), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
    }
  }
}

void expect_random_reads(const SigbusSafeMap* map, int file) {
  if (map != nullptr)
    madvise(const_cast<std::byte*>(map->bytes().data()), map->bytes().size(), MADV_RANDOM);
  else
    posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
}

}  // namespace millrace
