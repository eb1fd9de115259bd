// SPDX-License-Identifier: Apache-2.0
// Memory on a NUMA node, for devices and pipelines.
//
// Threads: all functions may be called from any thread at once.
// Lifetimes: a `Memory` owns its pages and refers to nothing else.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device.h>
#include <millrace/topology.h>

#include <cstddef>
#include <optional>

namespace MILLRACE_API millrace {

/// Zeroed memory of whole pages, in huge ones where it is big and the system has them. Its pages
/// come to lie on the NUMA node of the thread that first writes them. Throws `Error` (`device`)
/// where there is no such memory.
Memory allocate_pages(std::size_t bytes);

/// The same with every page in its place: on `node` where the system allows. It is asked to keep
/// the memory there (mbind), and a thread on the node's processors is the first to write each page,
/// so that this also holds where it may not be asked, as in some containers. A node that is full or
/// does not exist is no error: `pages_elsewhere` tells.
Memory allocate_on_node(std::size_t bytes, const NumaNode& node);

/// How many pages of `memory`, all of them written before, lie on another node than `node`
/// (operating system's number); none where the system does not tell.
std::optional<std::size_t> pages_elsewhere(const Memory& memory, int node);

}  // namespace millrace
