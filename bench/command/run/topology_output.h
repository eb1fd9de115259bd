// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/instruction_sets.h>
#include <millrace/detail/placement.h>

#include <optional>
#include <string>
#include <vector>

namespace millrace::cli {

/// The contents of `topology`, in any format.
struct TopologyView {
  Topology machine{};
  RuntimeOptions options{};
  Placement placement{};
  /// Whether workers could be bound to their nodes' processors. False on a simulated machine, where
  /// binding is not tried.
  bool bound = false;
  /// Instruction sets after their self-checks; nullopt on a simulated machine.
  std::optional<InstructionSets> instructions{};
  /// Warnings of the placement, of binding the workers, and of the process.
  std::vector<std::string> warnings{};
};

std::string to_text(const TopologyView& view);

/// Formats as JSON; README.md lists the keys.
std::string to_json(const TopologyView& view);

}  // namespace millrace::cli
