// SPDX-License-Identifier: Apache-2.0
#include <linux/mempolicy.h>
#include <millrace/error.h>
#include <millrace/numa_memory.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/thread_binding.h"

namespace millrace {
namespace {

// hwloc's calls for memory need a loaded topology, which takes milliseconds, and tell on which
// nodes pages lie but not how many: hence the system's own calls.

/// Memory of this size or more is worth huge pages, of which it then holds several.
constexpr std::size_t big_bytes = std::size_t{8} << 20;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

/// Asks for the pages to lie on `node`; those that exist are moved there. It prefers the node,
/// since to insist on one that is full would end the process.
void keep_on_node(const Memory& memory, int node) {
  constexpr std::size_t bits = sizeof(unsigned long) * CHAR_BIT;
  const auto number = static_cast<std::size_t>(node);
  std::vector<unsigned long> mask(number / bits + 1, 0);
  mask[number / bits] = 1UL << number % bits;
  // The kernel takes one bit less than it is told. What it cannot do is seen by `pages_elsewhere`.
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
      bind_this_thread(cpus);  // if that fails, `pages_elsewhere` tells
      write_each_page(memory);
    }).join();
  } catch (const std::system_error&) {
    write_each_page(memory);  // the system refused a thread
  }
}

}  // namespace

Memory allocate_pages(std::size_t bytes) {
  if (bytes == 0) return {};
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw Error(ErrorCode::device, "host: cannot take " + std::to_string(bytes) +
                                       " bytes of memory: " + std::strerror(errno));
  Memory memory(static_cast<std::byte*>(pages), bytes,
                [bytes](std::byte* data) { munmap(data, bytes); });
  if (bytes >= big_bytes)
    static_cast<void>(madvise(pages, bytes, MADV_HUGEPAGE));  // it may be refused without harm
  return memory;
}

Memory allocate_on_node(std::size_t bytes, const NumaNode& node) {
  Memory memory = allocate_pages(bytes);
  if (bytes == 0) return memory;
  if (node.number >= 0) keep_on_node(memory, node.number);
  write_each_page_on(memory, node.cpus);
  // The first pages may have gone elsewhere because cached files fill the node; these make room for
  // pages that are moved.
  if (node.number >= 0 && pages_elsewhere(memory, node.number).value_or(0) > 0)
    keep_on_node(memory, node.number);
  return memory;
}

std::optional<std::size_t> pages_elsewhere(const Memory& memory, int node) {
  constexpr std::size_t most_at_once = 512;
  const std::size_t step = page_bytes();
  std::array<void*, most_at_once> pages{};
  std::array<int, most_at_once> nodes{};
  std::size_t elsewhere = 0;
  for (std::size_t at = 0; at < memory.bytes();) {
    std::size_t count = 0;
    for (; count < most_at_once && at < memory.bytes(); at += step)
      pages[count++] = memory.data() + at;
    // If it is given no nodes to move to, it says where the pages are (move_pages(2)).
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
