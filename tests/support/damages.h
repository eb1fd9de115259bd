// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

// Random changes of a dataset file's bytes.

namespace millrace::testing {

/// Offsets of the pages that LMDB wrote to a file.
class FilePages {
 public:
  explicit FilePages(const std::string& contents) {
    std::memcpy(&page_bytes_, &contents[40], sizeof page_bytes_);
    for (std::size_t page = 0; page < contents.size(); page += page_bytes_) {
      std::uint64_t number = 0;
      std::memcpy(&number, &contents[page], sizeof number);
      if (number != page / page_bytes_) continue;
      headers_.push_back(page);
      if (contents[page + 10] == 1 || contents[page + 10] == 2) nodes_.push_back(page);
    }
  }

  std::size_t page_bytes() const { return page_bytes_; }
  /// Pages with a header: meta, branch, leaf, first page of a large value, and some free pages.
  const std::vector<std::size_t>& headers() const { return headers_; }
  /// Branches and leaves.
  const std::vector<std::size_t>& nodes() const { return nodes_; }

 private:
  std::uint32_t page_bytes_ = 0;
  std::vector<std::size_t> headers_;
  std::vector<std::size_t> nodes_;
};

/// Number of damages to try: MILLRACE_DAMAGES, or `usual`.
inline std::uint64_t damages(std::uint64_t usual) {
  const char* wanted = std::getenv("MILLRACE_DAMAGES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : usual;
}

/// Writes a number of 1, 2, 4 or 8 bytes, truncated at the end of `bytes`: one that has a meaning
/// in LMDB's format, or any.
inline void overwrite(std::span<char> bytes, std::size_t at, const FilePages& pages,
                      Random& random) {
  const std::size_t page_bytes = pages.page_bytes();
  const std::array<std::uint64_t, 10> telling = {0,
                                                 1,
                                                 page_bytes - 1,
                                                 page_bytes,
                                                 0xFFFF,
                                                 UINT32_MAX,
                                                 UINT64_MAX,
                                                 bytes.size() / page_bytes,
                                                 random.below(bytes.size() / page_bytes),
                                                 random()};
  const std::uint64_t value = telling[random.below(telling.size())];
  const std::size_t length = std::size_t{1} << random.below(4);
  std::memcpy(bytes.data() + at, &value, std::min(length, bytes.size() - at));
}

/// Changes the file's bytes in one of many ways, mostly in its structure.
inline void damage(std::span<char> bytes, const FilePages& pages, Random& random) {
  const auto any_of = [&](const std::vector<std::size_t>& some) {
    return some[random.below(some.size())];
  };
  const auto any_page = [&] {
    constexpr std::uint64_t meta_pages = 2;
    if (random.below(8) == 0) return pages.headers()[random.below(meta_pages)];
    return any_of(random.below(2) == 0 ? pages.nodes() : pages.headers());
  };
  const auto structural = [&] {
    constexpr std::size_t meta_bytes = 152;
    const std::size_t page = any_page();
    if (page < 2 * pages.page_bytes()) return page + 16 + random.below(meta_bytes - 16);
    // Damages the header, the nodes' offsets, any byte, or a node: its header, its key, or the
    // number of the page with its value.
    const std::array<std::size_t, 3> reach = {16, 100, pages.page_bytes()};
    const std::uint64_t part = random.below(2 * reach.size());
    if (part < reach.size()) return page + random.below(reach[part]);
    std::uint16_t node = 0;
    std::memcpy(&node, &bytes[page + 16 + 2 * random.below(20)], sizeof node);
    return page + std::min(node + random.below(24), pages.page_bytes() - 1);
  };
  const std::size_t times = 1 + random.below(3) * random.below(3);
  switch (random.below(6)) {
    case 0:
    case 1:
      for (std::size_t time = 0; time < times; ++time)
        bytes[structural()] ^= static_cast<char>(1 << random.below(8));
      break;
    case 2:
    case 3:
      for (std::size_t time = 0; time < times; ++time)
        overwrite(bytes, structural(), pages, random);
      break;
    case 4:
      for (std::size_t time = 0; time < times; ++time)
        bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
      break;
    default: {
      // Copies a page over another one, with its own number or the other's.
      const std::size_t from = any_page();
      const std::size_t to = any_page();
      const std::size_t header = random.below(2) * 8;
      std::memmove(bytes.data() + to + header, bytes.data() + from + header,
                   pages.page_bytes() - header);
    }
  }
}

}  // namespace millrace::testing
