// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Threads: the functions may be called by several threads at the same time. Lifetimes: all types
// are plain data without references.

namespace MILLRACE_API millrace {

/// The data caches of one level in a NUMA node. Caches of processors that this process may not use
/// count, too.
struct CacheLevel {
  unsigned level = 1;
  /// Size of one cache.
  std::uint64_t bytes = 0;
  unsigned count = 0;
  /// Number of processors that share one cache, usable or not.
  unsigned cpus_per_cache = 0;
};

/// One NUMA node and its processors (hardware threads) that this process may use, by the operating
/// system's numbers.
struct NumaNode {
  int number = 0;
  /// In ascending order. Each processor belongs to one node. A processor that is near to several
  /// memories belongs to the node with the lowest number.
  std::vector<int> cpus{};
  /// The same processors grouped by physical core; empty if the cores are unknown.
  std::vector<std::vector<int>> physical_cores{};
  std::uint64_t memory_bytes = 0;
  /// In ascending order of levels.
  std::vector<CacheLevel> caches{};
};

/// A device on the PCI bus.
struct PciDevice {
  enum class Kind { gpu, nic };
  Kind kind = Kind::gpu;
  /// Name given by its driver ("NVIDIA H200", "eth0, mlx5_0"); without a driver "10de:2335"
  /// (vendor, device).
  std::string name{};
  /// "0000:41:00.0"
  std::string address{};
  /// NUMA node that it is attached to; nullopt if the system does not report it.
  std::optional<int> node{};
  /// Whether threads of this process may launch kernels on it: true for an NVIDIA GPU that its
  /// driver and CUDA_VISIBLE_DEVICES make visible to this process.
  bool can_launch_kernels = false;
};

/// The processors that this process may use, grouped by NUMA node, and the limits that apply to it.
/// Also the machine's PCI devices.
struct Topology {
  /// Nodes with at least one usable processor, in order; at least one.
  std::vector<NumaNode> nodes{};
  /// Number of usable processors over all nodes, limited to the control group's quota, rounded up.
  unsigned usable_cpus = 1;
  /// All GPUs and network cards of the machine, in the order of their addresses. This process may
  /// not be allowed to use some of them (`PciDevice::can_launch_kernels`).
  std::vector<PciDevice> devices{};

  /// Number of processors of the machine, of the control group's cpuset, and of the process's
  /// affinity within this cpuset; 0 = unknown.
  unsigned machine_cpus = 0;
  unsigned cpuset_cpus = 0;
  unsigned affinity_cpus = 0;
  /// Whether the affinities of this process and of its parent differ within the cpuset. If false,
  /// this process has not been bound separately. True if the parent's affinity is unknown.
  bool affinity_differs_from_parent = true;
  /// The control group's quota in processors.
  std::optional<double> quota{};
  /// Whether the topology is synthetic, so that threads cannot be bound to its processors.
  bool synthetic = false;
  /// Model name of the processors; "unknown" if the system does not report it.
  std::string cpu_model = "unknown";
};

/// Reads the machine's topology (hwloc), restricted to the process's cpuset, its affinity and its
/// control group's quota. Throws `Error` (`internal`) if hwloc cannot read it. If a sandbox does
/// not let it read the affinity, the result is one node with the allowed processors that /proc
/// lists. It has no model name.
Topology read_topology();

/// Makes a synthetic machine from a description in hwloc's syntax. "pack:2 [numa] l3:1 core:4 pu:2"
/// means two packages, each with one NUMA node, one L3 cache and four cores. Each core has two
/// hardware threads. Throws `Error` (`invalid_argument`) if hwloc rejects the description, or if
/// the machine has more than 65,536 processors.
Topology synthetic_topology(const std::string& description);

/// Number of processors in all nodes.
std::size_t count_cpus(const Topology& topology);

/// Formats processor numbers like the system does, such as "0-3,8".
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace millrace
