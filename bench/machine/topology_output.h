// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/instruction_sets.h>
#include <millrace/detail/placement.h>

#include <optional>
#include <string>
#include <vector>

namespace millrace::cli {

/// What `topology` has to say, however it is written.
struct TopologyView {
  Topology machine{};
  RuntimeOptions options{};
  Placement placement{};
  /// Whether the workers could be bound to their nodes' processors; false on a made-up
  /// machine, on which that was not tried.
  bool bound = false;
  /// After their self-checks; nullopt on a made-up machine.
  std::optional<InstructionSets> instructions{};
  /// Warnings of the placement, of the attempt to bind the workers, and of the process.
  std::vector<std::string> warnings{};
};

std::string to_text(const TopologyView& view);

/// For programs; README.md lists the keys.
std::string to_json(const TopologyView& view);

}  // namespace millrace::cli
