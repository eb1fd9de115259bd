// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>
#include <millrace/topology.h>

#include <cstddef>
#include <optional>

// Threads: the functions may be called from any thread at once. Lifetimes: the `Memory` that they
// return owns its pages and refers to nothing else.

namespace millrace {

/// Takes zeroed memory of whole pages, in huge ones if it is big and the system has them. Its pages
/// come to lie on the NUMA node of the thread that first writes them. Throws `Error` (`device`) if
/// there is not so much memory.
Memory allocate_pages(std::size_t bytes);

/// Takes the same with every page in its place: on `node` if the system allows. It is asked to keep
/// the memory there (mbind), and a thread on the node's processors is the first to write each page,
/// which does it if the system may not be asked, as in some containers. A node that is full or does
/// not exist is no error: `pages_elsewhere` tells.
Memory allocate_on_node(std::size_t bytes, const NumaNode& node);

/// How many pages of `memory`, all of them written before, lie on another node than `node`
/// (operating system's number); nullopt if the system does not tell.
std::optional<std::size_t> pages_elsewhere(const Memory& memory, int node);

}  // namespace millrace
