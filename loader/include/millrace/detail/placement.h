// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/runtime.h>
#include <millrace/topology.h>

#include <string>
#include <vector>

// Threads: the functions may be called by several threads at the same time. Lifetimes: all types
// are plain data without references.

namespace MILLRACE_API millrace {

/// Placement of workers, with its reasons.
struct Placement {
  /// The machine that the workers are placed on, or this rank's share of it.
  Topology topology{};
  /// Workers per node of `topology`.
  std::vector<unsigned> workers{};
  /// Number of processors left free for threads that launch kernels.
  unsigned launch_cores = 0;
  /// Sentences for people: the reasons for these numbers, and warnings.
  std::vector<std::string> reasons{};
  std::vector<std::string> warnings{};

  unsigned total_workers() const;
};

/// Places the workers of a `Runtime` on `machine`. Throws `Error` (`invalid_argument`) if
/// `options` contradict each other.
Placement place_workers(const Topology& machine, const RuntimeOptions& options = {});

/// Returns the part of a host that rank `local_rank` of `local_world` ranks gets. The processors
/// are divided, node by node and core by core, into `local_world` consecutive pieces. Their sizes
/// differ by at most one. So each rank uses few nodes, and ranks do not overlap. If possible, a
/// rank gets a piece on the node of its GPU. If there are more ranks than processors, several ranks
/// share one. A quota is divided in the same way.
///
/// A launcher may have bound each rank to its own processors. This is assumed if the processors
/// differ from the parent process's, and are at most 1 / `local_world` of the control group's
/// cpuset. The rank then keeps its processors.
Topology share_of(const Topology& machine, unsigned local_rank, unsigned local_world);

}  // namespace millrace
