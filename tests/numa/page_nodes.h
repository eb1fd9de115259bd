// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace millrace::testing {

/// Key in the result of `page_nodes` for pages that were never written.
inline constexpr int nowhere = -1;

/// Number of pages of [data, data + bytes) per NUMA node, as reported by the kernel
/// (move_pages(2)).
inline std::map<int, std::size_t> page_nodes(const void* data, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  std::vector<std::uintptr_t> pages;
  for (std::uintptr_t at = begin / page * page; at < begin + bytes; at += page) pages.push_back(at);
  std::vector<int> nodes(pages.size(), 0);
  EXPECT_EQ(syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0), 0);
  std::map<int, std::size_t> counts;
  for (const int node : nodes) ++counts[node < 0 ? nowhere : node];
  return counts;
}

}  // namespace millrace::testing
