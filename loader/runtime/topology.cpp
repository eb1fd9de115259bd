// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <millrace/topology.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/cgroup.h"
#include "runtime/pci_devices.h"

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

TopologyHandle new_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    throw Error(ErrorCode::internal, "hwloc cannot set up a topology");
  return TopologyHandle(raw);
}

/// Returns the number of processors of a synthetic topology: the product of its numbers ("pack:2
/// core:4 2"), without those in brackets. The result is at most `most` + 1. Called before hwloc
/// reads the text, because hwloc allocates all processors, however many there are. Reads the text
/// as hwloc does: a number may have a sign, spaces before it and any base of `strtoul`, and the
/// next level may follow without a space. Returns nullopt for a text that hwloc would refuse, too.
std::optional<std::uint64_t> count_synthetic(const std::string& description, std::uint64_t most) {
  const char* at = description.c_str();
  const auto skip_behind = [&](char end) {
    const char* const found = std::strchr(at, end);
    at = found != nullptr ? found + 1 : at;
    return found != nullptr;
  };
  std::uint64_t processors = 1;
  for (;;) {
    if (*at == '(' && !skip_behind(')')) return {};  // attributes of the machine or of a level
    at += std::strspn(at, " \n");
    if (*at == '\0') return processors;
    if (*at == '[') {  // memory attached to the level
      if (!skip_behind(']')) return {};
      continue;
    }
    const bool has_type = *at < '0' || *at > '9';
    if (has_type && !skip_behind(':')) return {};
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(at, &end, 0);
    if (end == at || number == 0) return {};
    processors = number > most / processors ? most + 1 : processors * number;
    if (processors > most) return processors;
    at = end;
  }
}

std::vector<int> members(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int number = hwloc_bitmap_first(set); number >= 0; number = hwloc_bitmap_next(set, number))
    numbers.push_back(number);
  return numbers;
}

unsigned count_of(hwloc_const_bitmap_t set) {
  return static_cast<unsigned>(std::max(hwloc_bitmap_weight(set), 0));
}

/// Returns all objects of a type, in hwloc's order.
std::vector<hwloc_obj_t> objects_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> objects;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;)
    objects.push_back(object);
  return objects;
}

std::vector<CacheLevel> caches_in(hwloc_topology_t topology, hwloc_const_bitmap_t node) {
  std::vector<CacheLevel> levels;
  // Caches of these types hold data. Pure instruction caches have other types.
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                      HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    CacheLevel level;
    for (const hwloc_obj_t cache : objects_of(topology, type)) {
      if (hwloc_bitmap_intersects(cache->cpuset, node) == 0) continue;
      level.level = cache->attr->cache.depth;
      level.bytes = std::max<std::uint64_t>(level.bytes, cache->attr->cache.size);
      level.cpus_per_cache = std::max(level.cpus_per_cache, count_of(cache->cpuset));
      ++level.count;
    }
    if (level.count > 0) levels.push_back(level);
  }
  return levels;
}

/// Returns the processors of `usable`, grouped by physical core, in hwloc's order of cores.
std::vector<std::vector<int>> cores_in(hwloc_topology_t topology, hwloc_const_bitmap_t usable) {
  std::vector<std::vector<int>> cores;
  const Bitmap of_core(hwloc_bitmap_alloc());
  for (const hwloc_obj_t core : objects_of(topology, HWLOC_OBJ_CORE)) {
    hwloc_bitmap_and(of_core.get(), core->cpuset, usable);
    if (hwloc_bitmap_iszero(of_core.get()) == 0) cores.push_back(members(of_core.get()));
  }
  return cores;
}

/// Returns the nodes that have processors of `usable`.
std::vector<NumaNode> nodes_in(hwloc_topology_t topology, hwloc_const_bitmap_t usable) {
  std::vector<hwloc_obj_t> objects = objects_of(topology, HWLOC_OBJ_NUMANODE);
  std::ranges::sort(objects, {}, [](hwloc_obj_t node) { return node->os_index; });

  std::vector<NumaNode> nodes;
  const Bitmap remaining(hwloc_bitmap_dup(usable));
  const Bitmap of_node(hwloc_bitmap_alloc());
  for (const hwloc_obj_t object : objects) {
    // In hwloc, further memory of the same processors (of another kind, or of a device) is a
    // separate node. Such a node has no processors left for workers.
    hwloc_bitmap_and(of_node.get(), object->cpuset, remaining.get());
    if (hwloc_bitmap_iszero(of_node.get()) != 0) continue;
    hwloc_bitmap_andnot(remaining.get(), remaining.get(), of_node.get());
    nodes.push_back({.number = static_cast<int>(object->os_index),
                     .cpus = members(of_node.get()),
                     .physical_cores = cores_in(topology, of_node.get()),
                     .memory_bytes = object->attr->numanode.local_memory,
                     .caches = caches_in(topology, object->cpuset)});
  }
  if (nodes.empty())
    nodes.push_back({.cpus = members(usable), .physical_cores = cores_in(topology, usable)});
  return nodes;
}

/// Whether the kernel refuses to report this process's affinity, as in some sandboxes. hwloc would
/// then ask with larger and larger sets and never return.
bool affinity_is_refused() {
  constexpr std::size_t max_bytes = std::size_t{1} << 17;  // for 2^20 processors
  for (std::size_t bytes = sizeof(cpu_set_t); bytes <= max_bytes; bytes *= 2) {
    std::vector<cpu_set_t> set(bytes / sizeof(cpu_set_t));
    if (sched_getaffinity(0, bytes, set.data()) == 0) return false;
    if (errno != EINVAL) return true;
  }
  return true;
}

/// Returns a topology with one node, read without hwloc. Its processors are those that /proc allows
/// the process, else all that are online. Each processor counts as a core.
Topology read_without_hwloc() {
  const Bitmap usable(hwloc_bitmap_alloc());
  constexpr std::string_view key = "Cpus_allowed_list:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) {
      line.erase(0, line.find_first_not_of(" \t", key.size()));
      hwloc_bitmap_list_sscanf(usable.get(), line.c_str());
    }
  const long online = std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
  if (hwloc_bitmap_weight(usable.get()) < 1)
    hwloc_bitmap_set_range(usable.get(), 0, static_cast<int>(online - 1));
  Topology topology;
  NumaNode node;
  node.cpus = members(usable.get());
  for (const int cpu : node.cpus) node.physical_cores.push_back({cpu});
  topology.affinity_cpus = count_of(usable.get());
  topology.machine_cpus = std::max(static_cast<unsigned>(online), topology.affinity_cpus);
  topology.cpuset_cpus = topology.affinity_cpus;
  topology.nodes.push_back(std::move(node));
  topology.devices = read_pci_devices("/", std::getenv("CUDA_VISIBLE_DEVICES"));
  return topology;
}

Topology read_with_hwloc() {
  const TopologyHandle handle = new_topology();
  // Without sysfs hwloc prints an error on standard error, so that part of it is disabled.
  if (access("/sys/devices/system/cpu", R_OK) != 0 && access("/sys/bus/cpu/devices", R_OK) != 0)
    hwloc_topology_set_components(handle.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                  "linux:cpu");
  // Also loads processors that the control group withholds, to count them.
  hwloc_topology_set_flags(handle.get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(handle.get()) != 0)
    throw Error(ErrorCode::internal, "hwloc cannot read this machine's topology");
  Topology topology;
  topology.machine_cpus = count_of(hwloc_topology_get_topology_cpuset(handle.get()));
  const Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(handle.get())));
  topology.cpuset_cpus = count_of(usable.get());
  const Bitmap own(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(handle.get(), own.get(), HWLOC_CPUBIND_PROCESS) == 0)
    hwloc_bitmap_and(usable.get(), usable.get(), own.get());
  topology.affinity_cpus = count_of(usable.get());
  const Bitmap of_parent(hwloc_bitmap_alloc());
  if (hwloc_get_proc_cpubind(handle.get(), getppid(), of_parent.get(), 0) == 0) {
    hwloc_bitmap_and(of_parent.get(), of_parent.get(),
                     hwloc_topology_get_allowed_cpuset(handle.get()));
    topology.affinity_differs_from_parent =
        hwloc_bitmap_isequal(of_parent.get(), usable.get()) == 0;
  }

  for (const hwloc_obj_t package : objects_of(handle.get(), HWLOC_OBJ_PACKAGE))
    if (const char* model = hwloc_obj_get_info_by_name(package, "CPUModel"))
      topology.cpu_model = model;
  topology.nodes = nodes_in(handle.get(), usable.get());
  topology.devices = read_pci_devices("/", std::getenv("CUDA_VISIBLE_DEVICES"));
  if (hwloc_get_nbobjs_by_type(handle.get(), HWLOC_OBJ_NUMANODE) == 1)
    for (PciDevice& device : topology.devices) device.node = topology.nodes.front().number;
  return topology;
}

}  // namespace

Topology read_topology() {
  Topology topology = affinity_is_refused() ? read_without_hwloc() : read_with_hwloc();
  topology.usable_cpus = std::max(topology.affinity_cpus, 1U);
  topology.quota = cgroup_quota();
  if (topology.quota && *topology.quota < topology.usable_cpus)
    topology.usable_cpus = std::max(static_cast<unsigned>(std::ceil(*topology.quota)), 1U);
  return topology;
}

Topology synthetic_topology(const std::string& description) {
  constexpr std::uint64_t max_processors = 65536;
  const auto not_synthetic = [&] {
    return Error(ErrorCode::invalid_argument,
                 "\"" + cut(description) +
                     "\" is not a synthetic topology of hwloc; an example is \"pack:2 [numa] l3:1 "
                     "core:4 pu:1\"");
  };
  const std::optional<std::uint64_t> processors = count_synthetic(description, max_processors);
  if (!processors) throw not_synthetic();
  if (*processors > max_processors)
    throw Error(ErrorCode::invalid_argument,
                "a synthetic topology has at most " + std::to_string(max_processors) +
                    " processors; \"" + cut(description) + "\" has more");
  const TopologyHandle handle = new_topology();
  if (hwloc_topology_set_synthetic(handle.get(), description.c_str()) != 0 ||
      hwloc_topology_load(handle.get()) != 0)
    throw not_synthetic();
  const hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(handle.get());
  Topology topology;
  topology.nodes = nodes_in(handle.get(), all);
  topology.usable_cpus = topology.machine_cpus = topology.cpuset_cpus = topology.affinity_cpus =
      count_of(all);
  topology.synthetic = true;
  return topology;
}

std::size_t count_cpus(const Topology& topology) {
  std::size_t cpus = 0;
  for (const NumaNode& node : topology.nodes) cpus += node.cpus.size();
  return cpus;
}

std::string cpu_list(const std::vector<int>& cpus) {
  const Bitmap set(hwloc_bitmap_alloc());
  for (const int cpu : cpus) hwloc_bitmap_set(set.get(), static_cast<unsigned>(cpu));
  char* text = nullptr;
  hwloc_bitmap_list_asprintf(&text, set.get());
  const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
  return text == nullptr ? "" : text;
}

}  // namespace millrace
