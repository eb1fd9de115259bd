// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/topology.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Threads: all methods of a `Runtime` may be called from any thread at once. Lifetimes: a pipeline
// shares ownership of its runtime. Pools live as long as their runtime.

// Private types, outside the exported namespace.
namespace millrace {
class RuntimeServices;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// Whether workers are bound to the processors of their NUMA node.
enum class Numa {
  off,      ///< the operating system places them
  prefer,   ///< they are bound if possible; otherwise `Runtime::warnings` says why not
  require,  ///< an error if workers cannot be bound
};

struct RuntimeOptions {
  /// Number of worker threads over all nodes; 0 = one per usable processor (`Topology::cores`,
  /// which counts hardware threads), minus those left free.
  unsigned workers = 0;
  Numa numa = Numa::prefer;
  /// Adapt the number of active workers: each pipeline requests the fewest that keep its batches
  /// ready, and the other workers sleep.
  bool adaptive = false;
  /// Number of processors to leave free for threads that launch kernels, because launches are
  /// delayed on a fully loaded host. At least one worker remains. nullopt = one per GPU that this
  /// rank drives, if the rank has four processors or more. Ignored if `workers` is not 0.
  std::optional<unsigned> launch_cores{};
  /// Number of this process among the processes that share the host, and how many they are. Each
  /// takes its share of the cores and of the GPUs.
  unsigned local_rank = 0;
  unsigned local_world = 1;
  /// Pinning memory is slow and may block other work of the driver. So a runtime keeps the host
  /// memory of ended pipelines for later ones, if the device allows it
  /// (`Device::keeps_host_memory`). This is the maximal number of unused bytes to keep for each
  /// device and NUMA node. 0 = keep nothing. nullopt = keep at most the largest amount that was in
  /// use at one time, including the memory in use.
  std::optional<std::size_t> kept_host_bytes{};
  /// The machine to place workers on; nullopt = this one.
  std::optional<Topology> topology{};
};

class Dataset;
struct Placement;
class WorkerPool;

/// The worker threads of a process. Pipelines that are given the same runtime share its cores.
class Runtime {
 public:
  /// Throws `Error`: `invalid_argument` if options contradict each other or if `Numa::require`
  /// cannot be satisfied, `io` if the operating system refuses a thread, `internal` if hwloc cannot
  /// read the machine.
  explicit Runtime(const RuntimeOptions& options = {});
  /// Ends the workers. Hanging workers are detached and keep the objects that they use: at once if
  /// a pipeline has waited for them already, else after half a second for all together.
  ~Runtime();

  /// The machine that the workers are placed on, or this rank's share of it.
  const Topology& topology() const;
  /// Explanation of the number of workers and their placement, in sentences for people.
  const std::vector<std::string>& placement() const;
  /// Warnings, one sentence each: workers that could not be bound, and why; more workers (with
  /// those of other runtimes in this process) or ranks than cores.
  std::vector<std::string> warnings() const;
  /// Number of cores that are left free for threads that launch kernels.
  unsigned launch_cores() const;
  /// The pools, one per node that has workers; at least one. They help each other.
  const std::vector<std::unique_ptr<WorkerPool>>& pools() const { return pools_; }
  /// Number of threads over all pools; their numbers are 0 .. workers()-1.
  unsigned workers() const;

  /// Sets the number of active workers over all pools, spread evenly; 0 pauses all work. If there
  /// are fewer workers than pools, some pools pause. Other pools then make the samples of their
  /// slots. A pipeline that is confined to the node of a paused pool pauses too.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;

  bool adaptive() const { return adaptive_; }
  /// Bytes of host memory that are kept, over all devices and nodes.
  std::size_t kept_host_bytes() const;

 private:
  friend class RuntimeServices;

  const bool adaptive_;
  /// The part that only pipelines use.
  std::unique_ptr<RuntimeServices> services_;
  std::unique_ptr<const Placement> placement_;
  std::vector<std::string> unbound_;
  std::vector<std::unique_ptr<WorkerPool>> pools_;
};

/// Makes a runtime that several pipelines can share. Throws like the constructor.
std::shared_ptr<Runtime> make_runtime(const RuntimeOptions& options = {});

/// Stores the hints that the pipelines of a runtime have made for a dataset so far
/// (`Sample::hint`) beside each of its files. `open_dataset` finds them there from then on. Records
/// without such a hint keep their stored one. Returns the number of records with a hint. Pipelines
/// may run meanwhile. The dataset must have been opened with checksums, because image transforms
/// bind their hints to them. Throws `Error`: `invalid_argument` for a dataset that does not consist
/// of files, or whose files were replaced meanwhile; `already_exists` while another writer writes
/// the same hints, and if another file has their name; `io`.
std::uint64_t save_hints(const std::shared_ptr<const Dataset>& dataset, Runtime& runtime);

}  // namespace millrace
