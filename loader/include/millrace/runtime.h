// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/topology.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Threads: all methods of a `Runtime` may be called from any thread at once. Lifetimes: a pipeline
// shares ownership of its runtime. Pools live as long as their runtime.

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
  /// Maximal bytes of unused host memory to keep for each device and NUMA node
  /// (`Runtime::host_memory`). 0 = keep nothing. nullopt = keep at most the largest amount that was
  /// in use at one time, including the memory in use.
  std::optional<std::size_t> kept_host_bytes{};
  /// The machine to place workers on; nullopt = this one.
  std::optional<Topology> topology{};
};

class Dataset;
class Device;
struct CacheablePrefix;
class HostMemoryPool;
class Memory;
struct Placement;
class RecordHints;
class SampleCache;
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

  /// Sets the number of workers of `pools` (empty: of all) that `pipeline` needs from now on; 0
  /// counts as 1. An adaptive runtime keeps as many workers active as all pipelines need together.
  /// Each pipeline's workers are assigned to those of its pools that have the fewest active
  /// workers. A pool may have none, because other pools help with work that is not confined to it.
  /// If the runtime is not adaptive, this call does nothing.
  void need(const void* pipeline, unsigned workers, const std::vector<WorkerPool*>& pools = {});
  /// Releases the workers that `pipeline` needed. `hangs` says that some of them did not finish in
  /// time.
  void release(const void* pipeline, bool hangs = false);
  bool adaptive() const { return adaptive_; }

  /// Record hints of a dataset, shared by all pipelines over it. The memory limit is the largest
  /// `bytes` of all calls; nullopt = a hundredth of what this process may use (with several ranks
  /// on a host: of its share). Returns null for 0 bytes. Hints are freed with the runtime; those of
  /// a destroyed dataset are freed by the next call.
  std::shared_ptr<RecordHints> hints_of(const std::shared_ptr<const Dataset>& dataset,
                                        std::optional<std::size_t> bytes);

  /// Sample cache of a dataset. It is shared by all pipelines over the dataset whose transforms
  /// have this fixed part, which must not be empty. The memory limit is the largest `bytes` of all
  /// calls. It is freed like hints.
  std::shared_ptr<SampleCache> cache_of(const std::shared_ptr<const Dataset>& dataset,
                                        const CacheablePrefix& part, std::size_t bytes);

  /// Returns `bytes` of host memory on `node` that `device` copies from at full speed. Its content
  /// is undefined. Throws like `Device::allocate_host`.
  ///
  /// Pinning memory is slow and may block other work of the driver. So the runtime keeps memory
  /// that a pipeline returns, if the device allows it (`Device::keeps_host_memory`). Later
  /// pipelines over a device of that name reuse it, or parts of it, if it is large enough. For each
  /// device and node the memory in use and kept is at most the largest amount that was in use at
  /// one time, and `RuntimeOptions::kept_host_bytes` limits the kept memory. One allocation counts
  /// as a whole, and is kept while a part of it is in use.
  ///
  /// If an allocation fails, all kept memory is freed and the allocation is tried again. Kept
  /// memory is freed with the runtime.
  Memory host_memory(Device& device, std::size_t bytes, const NumaNode& node);
  /// Bytes of host memory that are kept, over all devices and nodes.
  std::size_t kept_host_bytes() const;

 private:
  struct Need;
  struct Needs;
  struct Kept;

  /// Activates as many workers as all needs together require.
  void activate(const std::vector<Need>& needs);
  void set_need(const void* pipeline, Need need);
  std::vector<WorkerPool*> all_pools() const;

  const bool adaptive_;
  std::atomic<bool> some_hang_{false};
  std::unique_ptr<Needs> needs_;
  std::unique_ptr<Kept> kept_;
  const std::shared_ptr<HostMemoryPool> host_memory_;
  const std::size_t default_hint_bytes_;
  std::unique_ptr<const Placement> placement_;
  std::vector<std::string> unbound_;
  std::vector<std::unique_ptr<WorkerPool>> pools_;
};

/// Makes a runtime that several pipelines can share. Throws like the constructor.
std::shared_ptr<Runtime> make_runtime(const RuntimeOptions& options = {});

}  // namespace millrace
