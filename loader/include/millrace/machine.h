// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Threads: the functions may be called by several threads at the same time. Lifetimes: all types
// are plain data without references.

namespace MILLRACE_API millrace {

/// Properties of a machine that determine which options are good on it.
struct MachineIdentity {
  /// `Topology::cpu_model`
  std::string cpu;
  /// Number of processors that the process may use: `Topology::usable_cpus`.
  unsigned cores = 0;
  /// Number of NUMA nodes that the process may use: those of `Topology::nodes`.
  std::size_t numa_nodes = 0;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const MachineIdentity&, const MachineIdentity&) = default;
};

/// Identifies this machine, restricted to `topology`.
MachineIdentity identify_machine(const Topology& topology = read_topology());

/// Lists the differences between `here` and `there`, one sentence each; empty if they are the same.
/// A difference in memory of less than 2% is ignored, because operating systems reserve different
/// amounts.
std::vector<std::string> machine_differences(const MachineIdentity& there,
                                             const MachineIdentity& here);

}  // namespace millrace
