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

/// Where a result was measured.
struct Machine : MachineIdentity {
  /// Cores that have usable processors, and the most processors of one: 2 = two hardware threads.
  /// 0 = not known.
  std::size_t physical_cores = 0;
  std::size_t threads_per_core = 0;
  /// All caches of the last level on the nodes that the process may use; nullopt = not known.
  std::optional<std::uint64_t> last_level_cache_bytes{};
  std::string kernel;
  std::string compiler;
  /// The commit that millrace was built from, with "-dirty" if the tree had changes then.
  std::string commit;
  /// Name and version of each library.
  std::vector<std::pair<std::string, std::string>> libraries;
};

Machine describe_machine(const Topology& topology);

/// The machine's facts by their keys.
nlohmann::ordered_json facts_json(const Machine& machine);

/// The same facts for people: a row of name and value for each.
std::vector<std::vector<std::string>> fact_rows(const Machine& machine);

}  // namespace millrace::cli
