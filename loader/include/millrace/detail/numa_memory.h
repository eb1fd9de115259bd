// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device.h>
#include <millrace/topology.h>

#include <cstddef>
#include <optional>

// Threads: the functions may be called by several threads at the same time. Lifetimes: the returned
// `Memory` owns its pages and refers to nothing else.

namespace MILLRACE_API millrace {

/// Allocates zeroed memory of whole pages. Large memory uses huge pages if the system has them.
/// Each page is placed on the NUMA node of the thread that first writes it. Throws `Error`
/// (`device`) if there is not enough memory.
Memory allocate_pages(std::size_t bytes);

/// Allocates the same with all pages placed on `node`, if the system allows. It requests this
/// placement from the system (mbind). In addition, a thread on the node's processors is the first
/// to write each page. This places the pages if the system refuses mbind, as in some containers. A
/// node that is full or does not exist does not cause an error; use `pages_elsewhere` to detect it.
Memory allocate_on_node(std::size_t bytes, const NumaNode& node);

/// Number of pages of `memory` that are on another node than `node` (operating system's number);
/// nullopt if the system does not report it. All pages must have been written before.
std::optional<std::size_t> pages_elsewhere(const Memory& memory, int node);

}  // namespace millrace
