// SPDX-License-Identifier: Apache-2.0
#include "measure/machine/machine.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwy/highway.h>
#include <jpeglib.h>
#include <lmdb.h>
#include <sys/utsname.h>
#include <tbb/version.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>  // must precede jpeglib.h
#include <memory>
#include <nlohmann/json.hpp>

#include "measure/machine/commit.h"

#define MILLRACE_TEXT_OF(x) #x
#define MILLRACE_TEXT(x) MILLRACE_TEXT_OF(x)

namespace millrace::cli {
namespace {

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "unknown";
}

template <typename Number>
std::string version_text(Number major, Number minor, Number patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

/// Returns the version of the loaded hwloc, which it stores in its topologies. The version of its
/// API is older.
std::string hwloc_version() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return HWLOC_VERSION;
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(
      made, hwloc_topology_destroy);
  if (hwloc_topology_set_synthetic(made, "pu:1") != 0 || hwloc_topology_load(made) != 0)
    return HWLOC_VERSION;
  const char* version = hwloc_obj_get_info_by_name(hwloc_get_root_obj(made), "hwlocVersion");
  return version != nullptr ? version : HWLOC_VERSION;
}

/// Adds the numbers of cores and caches.
void count_cores(const Topology& topology, Machine& machine) {
  std::uint64_t cache_bytes = 0;
  for (const NumaNode& node : topology.nodes) {
    machine.physical_cores += node.physical_cores.size();
    for (const std::vector<int>& core : node.physical_cores)
      machine.threads_per_core = std::max(machine.threads_per_core, core.size());
    if (!node.caches.empty()) cache_bytes += node.caches.back().bytes * node.caches.back().count;
  }
  if (cache_bytes > 0) machine.last_level_cache_bytes = cache_bytes;
}

/// A fact about a machine, with its key in the JSON and its name in the text.
struct MachineFact {
  const char* key;
  const char* label;
  nlohmann::ordered_json value;
  /// Unit after a number in the text.
  const char* unit = "";
};

std::vector<MachineFact> facts_of(const Machine& machine) {
  using Json = nlohmann::ordered_json;
  const auto known = [](std::size_t count) { return count > 0 ? Json(count) : Json(); };
  const auto& caches = machine.last_level_cache_bytes;
  return {{"cpu", "Processor", machine.cpu},
          {"cores", "Usable cores", machine.cores},
          {"physical_cores", "Physical cores", known(machine.physical_cores)},
          {"threads_per_core", "Usable threads per core", known(machine.threads_per_core)},
          {"numa_nodes", "NUMA nodes", machine.numa_nodes},
          {"last_level_cache_mb", "Last-level caches",
           caches ? Json(static_cast<double>(*caches) / 1e6) : Json(), " MB"},
          {"kernel", "Kernel", machine.kernel},
          {"compiler", "Compiler", machine.compiler},
          {"commit", "millrace commit", machine.commit}};
}

}  // namespace

Machine describe_machine(const Topology& topology) {
  Machine machine;
  static_cast<MachineIdentity&>(machine) = identify_machine(topology);
  count_cores(topology, machine);
  machine.kernel = kernel_release();
  machine.compiler = __VERSION__;
  machine.commit = commit();
  int lmdb[3] = {};
  mdb_version(&lmdb[0], &lmdb[1], &lmdb[2]);
  const unsigned xxhash = XXH_versionNumber();  // 801 means 0.8.1
  machine.libraries = {
      {"millrace", MILLRACE_VERSION},
      {"libjpeg-turbo", MILLRACE_TEXT(LIBJPEG_TURBO_VERSION)},
      {"highway", version_text(HWY_MAJOR, HWY_MINOR, HWY_PATCH)},
      {"onetbb", TBB_runtime_version()},
      {"lmdb", version_text(lmdb[0], lmdb[1], lmdb[2])},
      {"hwloc", hwloc_version()},
      {"xxhash", version_text(xxhash / 10000, xxhash / 100 % 100, xxhash % 100)},
  };
  return machine;
}

nlohmann::ordered_json facts_json(const Machine& machine) {
  nlohmann::ordered_json json;
  for (const MachineFact& fact : facts_of(machine)) json[fact.key] = fact.value;
  json["libraries"] = nlohmann::ordered_json::object();
  for (const auto& [name, version] : machine.libraries) json["libraries"][name] = version;
  return json;
}

std::vector<std::vector<std::string>> fact_rows(const Machine& machine) {
  std::vector<std::vector<std::string>> rows;
  for (const MachineFact& fact : facts_of(machine)) {
    const auto& value = fact.value;
    rows.push_back({fact.label, value.is_null()     ? "unknown"
                                : value.is_string() ? value.get<std::string>()
                                                    : value.dump() + fact.unit});
  }
  for (const auto& [name, version] : machine.libraries) rows.push_back({name, version});
  return rows;
}

}  // namespace millrace::cli
