// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/worker_pool.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

/// One NUMA node and the processors of it that this process may use (operating system's numbers).
struct NumaNode {
  int number = 0;
  std::vector<int> cpus;
};

/// What this process may run on.
struct Topology {
  /// Nodes with at least one usable processor, in order; at least one.
  std::vector<NumaNode> nodes;
  /// Usable processors over all nodes, no more than the control group's quota allows.
  unsigned cores = 1;
};

/// Reads the machine's topology (hwloc), restricted to the process's cpuset and its control group's processor quota.
Topology read_topology();

struct RuntimeOptions {
  /// Worker threads over all nodes; 0 = one per usable core.
  unsigned workers = 0;
  /// Bind workers to their node's processors.
  bool bind = true;
  /// Let the pipelines say how many workers they need (the fewest that keep their batches ready); the others sleep.
  bool adaptive = false;
};

/// The workers of a process: explicit and shared. Pipelines that are given the same runtime share its cores. All methods may be
/// called from any thread at once.
class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});
  ~Runtime();

  const Topology& topology() const { return topology_; }
  /// One pool per node that got workers, at least one.
  const std::vector<std::unique_ptr<WorkerPool>>& pools() const { return pools_; }
  /// Threads over all pools; their numbers are 0 .. workers()-1.
  unsigned workers() const;

  /// How many workers are active over all pools, spread evenly; 0 pauses all work. With fewer than there are pools some pools
  /// pause, and so does every pipeline that has slots there.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;

  /// How many workers `pipeline` needs from now on. In an adaptive runtime as many are active as all pipelines need together, and
  /// at least one per pool; in another this does nothing.
  void need(const void* pipeline, unsigned workers);
  /// It needs none any more.
  void release(const void* pipeline);
  bool adaptive() const { return adaptive_; }
  /// The sum of `WorkerPool::delay` over all pools.
  std::optional<std::chrono::nanoseconds> delay() const;

 private:
  class Needs;

  const bool adaptive_;
  std::unique_ptr<Needs> needs_;
  Topology topology_;
  std::vector<std::unique_ptr<WorkerPool>> pools_;
};

std::shared_ptr<Runtime> make_runtime(RuntimeOptions options = {});

}  // namespace millrace
