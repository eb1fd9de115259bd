// SPDX-License-Identifier: Apache-2.0
#include <linux/mempolicy.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/numa_memory.h>
#include <millrace/error.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/thread_binding.h"

namespace millrace {
namespace {

// Uses the system's own calls. hwloc's calls for memory need a loaded topology, which takes
// milliseconds, and they return the nodes of pages but not the number of pages.

/// Minimal size for huge pages; such memory contains several.
constexpr std::size_t big_bytes = std::size_t{8} << 20;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

/// Requests that the pages are on `node`, and moves existing pages to it. The node is only
/// preferred, because insisting on a full node would end the process.
void keep_on_node(const Memory& memory, int node) {
  constexpr std::size_t bits = sizeof(unsigned long) * CHAR_BIT;
  const auto number = static_cast<std::size_t>(node);
  std::vector<unsigned long> mask(number / bits + 1, 0);
  mask[number / bits] = 1UL << number % bits;
  // The kernel reads one bit less than the given number of bits. `pages_elsewhere` detects a
  // failure.
  static_cast<void>(syscall(SYS_mbind, memory.data(), memory.bytes(), MPOL_PREFERRED, mask.data(),
                            mask.size() * bits + 1, MPOL_MF_MOVE));
}

void write_each_page(const Memory& memory) {
  const std::size_t step = page_bytes();
  for (std::size_t at = 0; at < memory.bytes(); at += step)
    *const_cast<volatile std::byte*>(memory.data() + at) = std::byte{0};
}

void write_each_page_on(const Memory& memory, const std::vector<int>& cpus) {
  try {
    std::thread([&] {
      bind_this_thread(cpus);  // `pages_elsewhere` detects a failure
      write_each_page(memory);
    }).join();
  } catch (const std::system_error&) {
    write_each_page(memory);  // no thread could be started
  }
}

}  // namespace

Memory allocate_pages(std::size_t bytes) {
  if (bytes == 0) return {};
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw Error(ErrorCode::device, "host: cannot take " + std::to_string(bytes) +
                                       " bytes of memory: " + errno_text(errno));
  Memory memory(static_cast<std::byte*>(pages), bytes,
                [bytes](std::byte* data) { munmap(data, bytes); });
  if (bytes >= big_bytes)
    static_cast<void>(madvise(pages, bytes, MADV_HUGEPAGE));  // a refusal is harmless
  return memory;
}

Memory allocate_on_node(std::size_t bytes, const NumaNode& node) {
  Memory memory = allocate_pages(bytes);
  if (bytes == 0) return memory;
  if (node.number >= 0) keep_on_node(memory, node.number);
  write_each_page_on(memory, node.cpus);
  // The first pages may be on other nodes because cached files filled this node. Writing the later
  // pages has evicted these files, so that pages can be moved now.
  if (node.number >= 0 && pages_elsewhere(memory, node.number).value_or(0) > 0)
    keep_on_node(memory, node.number);
  return memory;
}

std::optional<std::size_t> pages_elsewhere(const Memory& memory, int node) {
  constexpr std::size_t max_at_once = 512;
  const std::size_t step = page_bytes();
  std::array<void*, max_at_once> pages{};
  std::array<int, max_at_once> nodes{};
  std::size_t elsewhere = 0;
  for (std::size_t at = 0; at < memory.bytes();) {
    std::size_t count = 0;
    for (; count < max_at_once && at < memory.bytes(); at += step)
      pages[count++] = memory.data() + at;
    // Without target nodes, move_pages(2) returns the nodes on which the pages are.
    if (syscall(SYS_move_pages, 0, count, pages.data(), nullptr, nodes.data(), 0) != 0)
      return std::nullopt;
    const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::any_of(nodes.begin(), end, [](int one) { return one < 0; })) return std::nullopt;
    elsewhere += static_cast<std::size_t>(
        std::count_if(nodes.begin(), end, [node](int one) { return one != node; }));
  }
  return elsewhere;
}

}  // namespace millrace
