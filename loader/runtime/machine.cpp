// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <millrace/machine.h>

#include <algorithm>
#include <cmath>

#include "runtime/memory.h"

namespace millrace {
namespace {

constexpr double same_memory = 0.02;

/// Returns a text such as "7.8 GiB".
std::string gibibytes(std::uint64_t bytes) {
  const auto tenths = std::llround(static_cast<double>(bytes) * 10 / (1ULL << 30U));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

MachineIdentity identify_machine(const Topology& topology) {
  return {.cpu = topology.cpu_model,
          .cores = topology.usable_cpus,
          .numa_nodes = topology.nodes.size(),
          .memory_bytes = physical_memory()};
}

std::vector<std::string> machine_differences(const MachineIdentity& there,
                                             const MachineIdentity& here) {
  std::vector<std::string> differences;
  const auto differs = [&](const std::string& what, const std::string& was, const std::string& is) {
    differences.push_back("the " + what + " was " + was + ", here it is " + is);
  };
  if (there.cpu != here.cpu) differs("processor", cut(there.cpu), here.cpu);
  if (there.cores != here.cores)
    differs("number of usable cores", std::to_string(there.cores), std::to_string(here.cores));
  if (there.numa_nodes != here.numa_nodes)
    differs("number of NUMA nodes", std::to_string(there.numa_nodes),
            std::to_string(here.numa_nodes));
  const auto was = static_cast<double>(there.memory_bytes);
  const auto is = static_cast<double>(here.memory_bytes);
  if (std::abs(was - is) > same_memory * std::max(was, is))
    differs("memory", gibibytes(there.memory_bytes), gibibytes(here.memory_bytes));
  return differences;
}

}  // namespace millrace
