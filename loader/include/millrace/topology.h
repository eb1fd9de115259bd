// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Threads: the functions may be called from any thread at once. Lifetimes: everything here is plain
// data, which refers to nothing.

namespace MILLRACE_API millrace {

/// The caches of one level that hold data, of a whole NUMA node, whatever of it may be used.
struct CacheLevel {
  unsigned level = 1;
  /// The size of one of them.
  std::uint64_t bytes = 0;
  unsigned count = 0;
  /// How many processors share one.
  unsigned cpus = 0;
};

/// One NUMA node and the processors (hardware threads) of it that this process may use, by the
/// operating system's numbers.
struct NumaNode {
  int number = 0;
  /// Ascending. No processor is of two nodes: one that is near to several memories is of the node
  /// with the lowest number.
  std::vector<int> cpus{};
  /// The same processors by physical core, neighbours side by side; empty if it is not known which
  /// share a core.
  std::vector<std::vector<int>> physical_cores{};
  std::uint64_t memory_bytes = 0;
  /// From the first level up.
  std::vector<CacheLevel> caches{};
};

/// A device on the PCI bus.
struct PciDevice {
  enum class Kind { gpu, nic };
  Kind kind = Kind::gpu;
  /// What its driver calls it ("NVIDIA H200", "eth0, mlx5_0"); "10de:2335" (vendor, device) if no
  /// driver tells.
  std::string name{};
  /// "0000:41:00.0"
  std::string address{};
  /// The NUMA node it is attached to; nullopt if the system does not tell.
  std::optional<int> node{};
  /// Whether threads of this process may launch kernels on it: an NVIDIA GPU that its driver and
  /// CUDA_VISIBLE_DEVICES show to this process.
  bool launches = false;
};

/// What this process may run on, and what keeps it from the rest of the machine.
struct Topology {
  /// Nodes with at least one usable processor, in order; at least one.
  std::vector<NumaNode> nodes{};
  /// Usable processors over all nodes, no more than the control group's quota allows.
  unsigned cores = 1;
  /// In the order of their addresses, usable or not.
  std::vector<PciDevice> devices{};

  /// How many processors the machine has, how many of them the control group's cpuset has, and how
  /// many of those the affinity of the process has; 0 = not known.
  unsigned machine_cpus = 0;
  unsigned cpuset_cpus = 0;
  unsigned affinity_cpus = 0;
  /// Whether its parent process may run on other processors: if not, nobody has bound this process
  /// by itself.
  bool bound_apart = true;
  /// The control group's quota in processors.
  std::optional<double> quota{};
  /// Whether it is made up, so that no thread can be bound to its processors.
  bool synthetic = false;
  /// The processors' model name; "unknown" if the system does not tell.
  std::string cpu_model = "unknown";
};

/// Reads the machine's topology (hwloc), restricted to the process's cpuset, its affinity and its
/// control group's quota. Throws `Error` (`internal`) if hwloc cannot read it. Where a sandbox
/// refuses the affinity, there is one node of the processors that /proc allows, and no model name.
Topology read_topology();

/// A machine from hwloc's description of one, such as "pack:2 [numa] l3:1 core:4 pu:2" (two
/// packages with a NUMA node each, of four cores with two hardware threads). Throws `Error`
/// (`invalid_argument`) if hwloc does not understand it, or if it has more than 65,536 processors.
Topology synthetic_topology(const std::string& description);

/// The number of all nodes' processors.
std::size_t count_cpus(const Topology& topology);

/// Processors in the system's way of writing them, such as "0-3,8".
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace millrace
