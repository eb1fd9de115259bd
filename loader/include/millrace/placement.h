// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/runtime.h>
#include <millrace/topology.h>

#include <string>
#include <vector>

// Threads: the functions may be called from any thread at once. Lifetimes: everything here is plain
// data, which refers to nothing.

namespace millrace {

/// Where workers go, and why.
struct Placement {
  /// What they are placed on: the machine, or this rank's share of it.
  Topology topology{};
  /// Workers per node of `topology`.
  std::vector<unsigned> workers{};
  /// How many processors are left free for threads that launch kernels.
  unsigned launch_cores = 0;
  /// Sentences for people: what led to these numbers, and what is not as it should be.
  std::vector<std::string> reasons{};
  std::vector<std::string> warnings{};

  unsigned total_workers() const;
};

/// Places the workers of a `Runtime` on `machine`. Throws `Error` (`invalid_argument`) if
/// `options` contradict each other.
Placement place_workers(const Topology& machine, const RuntimeOptions& options = {});

/// What rank `local_rank` of `local_world` ranks on one host takes of it. The processors are cut
/// into that many consecutive pieces of equal size (within one), node by node and core by core, so
/// that ranks sit on few nodes and do not overlap; a rank has a piece on the node of its GPU if
/// there are enough. With more ranks than processors, ranks share one each. A quota is divided
/// likewise. If a launcher has bound each rank to processors of its own (others than the parent
/// process's, and at most 1 / `local_world` of the control group's cpuset), they stay as they are.
Topology share_of(const Topology& machine, unsigned local_rank, unsigned local_world);

}  // namespace millrace
