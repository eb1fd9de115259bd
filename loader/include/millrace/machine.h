// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// What about a machine decides which options are good on it.
struct MachineIdentity {
  /// The processor's model name; "unknown" where the system does not tell.
  std::string cpu;
  /// Processors that the process may use: `Topology::cores`.
  unsigned cores = 0;
  /// Nodes that the process may use: `Topology::nodes`.
  std::size_t numa_nodes = 0;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const MachineIdentity&, const MachineIdentity&) = default;
};

/// This machine, as far as `topology` goes.
MachineIdentity identify_machine(const Topology& topology = read_topology());

/// How `here` differs from `there`, a sentence each; empty where they are the same. Memory within
/// 2% is the same: kernels keep different amounts to themselves.
std::vector<std::string> machine_differences(const MachineIdentity& there,
                                             const MachineIdentity& here);

}  // namespace millrace
