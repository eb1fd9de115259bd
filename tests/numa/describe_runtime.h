// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/runtime.h>

#include <algorithm>
#include <string>

#include "numa/two_nodes.h"

namespace millrace::testing {

template <typename Numbers>
std::string listed(const Numbers& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

/// Describes the nodes and cores of this process, and where the workers of a runtime with default
/// options ran.
inline std::string describe_runtime() {
  const Runtime runtime;
  std::string text;
  for (const NumaNode& node : runtime.topology().nodes)
    text += "node " + std::to_string(node.number) + ": " + listed(node.cpus) + "\n";
  text += std::to_string(runtime.topology().usable_cpus) + " cores\n";
  const std::vector<Whereabouts> pools = watch(runtime.pools());
  for (const Whereabouts& pool : pools) {
    text += std::to_string(pool.workers.size()) + " workers on";
    for (const std::vector<int>& binding : pool.bindings) {
      text += " " + listed(binding);
      for (const std::set<int>& seen : {pool.seen, pool.seen_inside})
        if (!std::includes(binding.begin(), binding.end(), seen.begin(), seen.end()))
          text += ", but seen on " + listed(seen);
    }
    text += "\n";
  }
  return text;
}

}  // namespace millrace::testing
