// SPDX-License-Identifier: Apache-2.0
// How a runtime's workers are placed, for the runtime and for the command that shows it.
//
// Threads: all functions may be called from any thread at once.
// Lifetimes: everything here is plain data.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/runtime.h>
#include <millrace/topology.h>

#include <string>
#include <vector>

namespace MILLRACE_API millrace {

/// Where workers go, and why.
struct Placement {
  /// What they are placed on: the machine, or this rank's share of it.
  Topology topology{};
  /// Workers per node of `topology`.
  std::vector<unsigned> workers{};
  /// Processors left free for threads that launch kernels.
  unsigned launch_cores = 0;
  /// Sentences, for people: what led to these numbers, and what is not as it should be.
  std::vector<std::string> reasons{};
  std::vector<std::string> warnings{};

  unsigned total_workers() const;
};

/// Places the workers of a `Runtime` on `machine`. Throws `Error` (`invalid_argument`) where
/// `options` contradict each other.
Placement place_workers(const Topology& machine, const RuntimeOptions& options = {});

/// What rank `local_rank` of `local_world` ranks on one host takes of it. The processors are cut
/// into that many consecutive pieces of equal size (within one), node by node and core by core, so
/// that ranks sit on few nodes and do not overlap; a rank has a piece on the node of its GPU where
/// there are enough. With more ranks than processors each rank has one, not its own alone. A quota
/// is divided likewise. Where a launcher has bound each rank to processors of its own (others than
/// the parent process's, and fewer than the control group's cpuset has, by as many times as there
/// are ranks) they stay as they are.
Topology share_of(const Topology& machine, unsigned local_rank, unsigned local_world);

}  // namespace millrace
