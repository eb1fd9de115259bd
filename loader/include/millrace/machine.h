// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Threads: the functions may be called from any thread at once. Lifetimes: everything here is plain
// data, which refers to nothing.

namespace millrace {

/// What about a machine decides which options are good on it.
struct MachineIdentity {
  /// `Topology::cpu_model`
  std::string cpu;
  /// How many processors the process may use: `Topology::cores`.
  unsigned cores = 0;
  /// How many nodes the process may use: those of `Topology::nodes`.
  std::size_t numa_nodes = 0;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const MachineIdentity&, const MachineIdentity&) = default;
};

/// Identifies this machine, as far as `topology` goes.
MachineIdentity identify_machine(const Topology& topology = read_topology());

/// Tells how `here` differs from `there`, a sentence each; empty if they are the same. Memory that
/// differs by less than 2% is the same, since kernels keep different amounts to themselves.
std::vector<std::string> machine_differences(const MachineIdentity& there,
                                             const MachineIdentity& here);

}  // namespace millrace
