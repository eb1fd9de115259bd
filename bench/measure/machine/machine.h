// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/machine.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// The machine and software of a measurement.
struct Machine : MachineIdentity {
  /// Number of cores with usable processors, and the maximum of processors per core (2 = two
  /// hardware threads). 0 = unknown.
  std::size_t physical_cores = 0;
  std::size_t threads_per_core = 0;
  /// Total size of the last-level caches on the nodes that the process may use; nullopt = unknown.
  std::optional<std::uint64_t> last_level_cache_bytes{};
  std::string kernel;
  std::string compiler;
  /// Commit of the millrace build, with "-dirty" if the tree had changes.
  std::string commit;
  /// Name and version of each library.
  std::vector<std::pair<std::string, std::string>> libraries;
};

Machine describe_machine(const Topology& topology);

/// The facts by key.
nlohmann::ordered_json facts_json(const Machine& machine);

/// The same facts for people: rows of name and value.
std::vector<std::vector<std::string>> fact_rows(const Machine& machine);

}  // namespace millrace::cli
