// SPDX-License-Identifier: Apache-2.0
#include "command/run/topology_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

using Json = Figures::Json;

/// Returns a size as processor vendors state it: "32 KiB", "1.5 MiB".
std::string memory_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  const std::string text = fmt::format("{:.1f}", value);
  return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + " " + units[unit];
}

std::string node_text(const NumaNode& node) {
  std::string text =
      fmt::format("{} ({})", count_text(node.cpus.size(), "processor"), cpu_list(node.cpus));
  if (!node.physical_cores.empty()) text += " of " + count_text(node.physical_cores.size(), "core");
  return node.memory_bytes > 0 ? text + ", " + memory_text(node.memory_bytes) + " of memory" : text;
}

std::string caches_text(const std::vector<CacheLevel>& caches) {
  std::string text;
  for (const CacheLevel& cache : caches)
    text += fmt::format(
        "{}L{} {} x {}{}", text.empty() ? "" : ", ", cache.level, cache.count,
        memory_text(cache.bytes),
        cache.cpus_per_cache > 1 ? fmt::format(" ({} processors each)", cache.cpus_per_cache) : "");
  return text;
}

std::string device_text(const PciDevice& device) {
  std::string text = printable(device.name) +
                     (device.node ? fmt::format(", node {}", *device.node) : ", node not told");
  if (device.kind == PciDevice::Kind::gpu && !device.can_launch_kernels)
    text += ", not for CUDA in this process";
  return text;
}

std::string devices_text(const Topology& machine) {
  std::string text;
  for (const auto& [kind, name] :
       {std::pair(PciDevice::Kind::gpu, "GPU"), std::pair(PciDevice::Kind::nic, "NIC")}) {
    const auto is = [kind = kind](const PciDevice& device) { return device.kind == kind; };
    if (std::ranges::none_of(machine.devices, is)) text += table_row(name, "none");
    for (const PciDevice& device : machine.devices)
      if (is(device))
        text += table_row(fmt::format("{} {}", name, device.address), device_text(device));
  }
  return text;
}

/// Returns a text such as "AVX2" or "AVX2 (wrong pixels with AVX3)".
std::string set_text(const InstructionSets& sets) {
  if (sets.wrong.empty()) return sets.used;
  return fmt::format("{} (wrong pixels with {})", sets.used, fmt::join(sets.wrong, ", "));
}

std::string placement_text(const TopologyView& view) {
  const Placement& placement = view.placement;
  std::string text =
      fmt::format("\nA pipeline takes {}:\n", count_text(placement.total_workers(), "worker"));
  for (std::size_t number = 0; number < placement.workers.size(); ++number) {
    const NumaNode& node = placement.topology.nodes[number];
    if (placement.workers[number] == 0) continue;
    text += table_row(fmt::format("node {}", node.number),
                      fmt::format("{}{}{}", count_text(placement.workers[number], "worker"),
                                  view.bound               ? ", bound to "
                                  : view.machine.synthetic ? ", to be bound to "
                                                           : ", not bound to ",
                                  cpu_list(node.cpus)));
  }
  text += "because\n";
  for (const std::string& reason : placement.reasons) text += "  " + reason + "\n";
  for (const std::string& warning : view.warnings) text += "warning: " + warning + "\n";
  return text;
}

Json nodes_json(const Topology& machine) {
  Json nodes = Json::array();
  for (const NumaNode& node : machine.nodes) {
    Json caches = Json::array();
    for (const CacheLevel& cache : node.caches)
      caches.push_back({{"level", cache.level},
                        {"bytes", cache.bytes},
                        {"count", cache.count},
                        {"cpus", cache.cpus_per_cache}});
    nodes.push_back({{"number", node.number},
                     {"cpus", node.cpus},
                     {"physical_cores", node.physical_cores},
                     {"memory_bytes", node.memory_bytes},
                     {"caches", caches}});
  }
  return nodes;
}

Json devices_json(const Topology& machine, PciDevice::Kind kind) {
  Json devices = Json::array();
  for (const PciDevice& device : machine.devices) {
    if (device.kind != kind) continue;
    devices.push_back(
        {{"address", device.address}, {"name", device.name}, {"node", json_of(device.node)}});
    if (kind == PciDevice::Kind::gpu) devices.back()["launches"] = device.can_launch_kernels;
  }
  return devices;
}

Json placement_json(const TopologyView& view) {
  const Placement& placement = view.placement;
  Json nodes = Json::array();
  for (std::size_t number = 0; number < placement.workers.size(); ++number)
    nodes.push_back({{"number", placement.topology.nodes[number].number},
                     {"cpus", placement.topology.nodes[number].cpus},
                     {"workers", placement.workers[number]}});
  return {{"local_rank", view.options.local_rank},
          {"local_world", view.options.local_world},
          {"cores", placement.topology.usable_cpus},
          {"launch_cores", placement.launch_cores},
          {"workers", placement.total_workers()},
          {"nodes", nodes},
          {"bound", view.bound},
          {"reasons", placement.reasons},
          {"warnings", view.warnings}};
}

}  // namespace

std::string to_text(const TopologyView& view) {
  const Topology& machine = view.machine;
  std::string text = fmt::format("{}: {}", machine.synthetic ? "synthetic machine" : "this machine",
                                 count_text(machine.machine_cpus, "processor"));
  if (machine.usable_cpus < machine.machine_cpus)
    text += fmt::format(", {} for this process", machine.usable_cpus);
  text += "\n";
  for (const NumaNode& node : machine.nodes) {
    text += table_row(fmt::format("node {}", node.number), node_text(node));
    if (!node.caches.empty()) text += table_row("", caches_text(node.caches));
  }
  if (view.instructions) text += table_row("instruction set", set_text(*view.instructions));
  return text + devices_text(machine) + placement_text(view);
}

std::string to_json(const TopologyView& view) {
  const Topology& machine = view.machine;
  const Json json = {
      {"synthetic", machine.synthetic},
      {"machine_cpus", machine.machine_cpus},
      {"cpuset_cpus", machine.cpuset_cpus},
      {"affinity_cpus", machine.affinity_cpus},
      {"quota", json_of(machine.quota)},
      {"cores", machine.usable_cpus},
      {"nodes", nodes_json(machine)},
      {"instruction_set", view.instructions ? Json(view.instructions->used) : Json()},
      {"wrong_instruction_sets",
       view.instructions ? Json(view.instructions->wrong) : Json::array()},
      {"gpus", devices_json(machine, PciDevice::Kind::gpu)},
      {"nics", devices_json(machine, PciDevice::Kind::nic)},
      {"placement", placement_json(view)}};
  return json_text(json);
}

}  // namespace millrace::cli
