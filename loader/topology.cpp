// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>
#include <millrace/error.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace millrace {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

TopologyHandle load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error(ErrorCode::internal, "hwloc cannot set up a topology");
  TopologyHandle topology(raw);
  if (hwloc_topology_load(topology.get()) != 0) throw Error(ErrorCode::internal, "hwloc cannot read this machine's topology");
  return topology;
}

std::vector<int> members(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int number = hwloc_bitmap_first(set); number >= 0; number = hwloc_bitmap_next(set, number)) numbers.push_back(number);
  return numbers;
}

/// Processors' worth of time in "QUOTA PERIOD" (control groups, version 2); none for "max PERIOD" or no such file.
std::optional<double> quota_in(const std::filesystem::path& cpu_max) {
  std::ifstream file(cpu_max);
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  return std::strtod(quota.c_str(), nullptr) / period;
}

/// The smallest quota of this process's control group and those above it.
/// Source: Linux, Documentation/admin-guide/cgroup-v2.rst, cpu.max.
std::optional<double> cgroup_quota() {
  std::filesystem::path group = "/";
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) group = line.substr(3);
  std::optional<double> least;
  for (;; group = group.parent_path()) {
    const std::optional<double> quota = quota_in("/sys/fs/cgroup" + group.string() + "/cpu.max");
    if (quota && (!least || *quota < *least)) least = quota;
    if (!group.has_relative_path()) return least;
  }
}

}  // namespace

Topology read_topology() {
  const TopologyHandle handle = load_topology();
  const Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(handle.get())));
  const Bitmap own(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(handle.get(), own.get(), HWLOC_CPUBIND_PROCESS) == 0)
    hwloc_bitmap_and(usable.get(), usable.get(), own.get());

  Topology topology;
  const Bitmap of_node(hwloc_bitmap_alloc());
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(handle.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    hwloc_bitmap_and(of_node.get(), node->cpuset, usable.get());
    std::vector<int> cpus = members(of_node.get());
    if (!cpus.empty()) topology.nodes.push_back({static_cast<int>(node->os_index), std::move(cpus)});
  }
  if (topology.nodes.empty()) topology.nodes.push_back({0, members(usable.get())});

  std::size_t cpus = 0;
  for (const NumaNode& node : topology.nodes) cpus += node.cpus.size();
  topology.cores = static_cast<unsigned>(std::max<std::size_t>(cpus, 1));
  if (const std::optional<double> quota = cgroup_quota())
    topology.cores = std::clamp(static_cast<unsigned>(std::ceil(*quota)), 1U, topology.cores);
  return topology;
}

}  // namespace millrace
