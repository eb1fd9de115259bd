// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/machine.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// Where a result was measured.
struct Machine : MachineIdentity {
  std::string kernel;
  std::string compiler;
  /// The commit millrace was built from, "-dirty" when the tree had changes then.
  std::string commit;
  /// Name and version of each library.
  std::vector<std::pair<std::string, std::string>> libraries;
};

Machine describe_machine(const Topology& topology);

}  // namespace millrace::cli
