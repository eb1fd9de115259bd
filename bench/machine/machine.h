// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/machine.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// Where a result was measured.
struct Machine : MachineIdentity {
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
