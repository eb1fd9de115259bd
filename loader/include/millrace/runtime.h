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
// holds the runtime that it is given by a shared pointer; pools live as long as their runtime.

namespace MILLRACE_API millrace {

/// Whether workers are bound to the processors of their NUMA node.
enum class Numa {
  off,      ///< they run where the operating system puts them
  prefer,   ///< they are bound if that is possible; `Runtime::warnings` tells if it is not
  require,  ///< a runtime whose workers cannot be bound is an error
};

struct RuntimeOptions {
  /// How many worker threads there are over all nodes; 0 = one per usable processor
  /// (`Topology::cores`, which counts hardware threads), less those left free.
  unsigned workers = 0;
  Numa numa = Numa::prefer;
  /// Whether the pipelines say how many workers they need (the fewest that keep their batches
  /// ready), while the others sleep.
  bool adaptive = false;
  /// How many processors are left free for threads that launch kernels, since a host without one
  /// delays launches; at least one worker remains. Nullopt = one per GPU that this rank drives, if
  /// the rank has four processors or more. It has no effect if `workers` is not 0.
  std::optional<unsigned> launch_cores{};
  /// This process's number among those that share what the host lets it use, and how many they are:
  /// each takes its part of the cores and of the GPUs.
  unsigned local_rank = 0;
  unsigned local_world = 1;
  /// The most bytes of unused host memory that is kept for each device and NUMA node
  /// (`Runtime::host_memory`); 0 = none, nullopt = no limit but that the memory in use and kept is
  /// at most what was in use at one time.
  std::optional<std::size_t> kept_host_bytes{};
  /// The machine to place workers on; nullopt = this one.
  std::optional<Topology> topology{};
};

class Dataset;
class Device;
struct FixedPart;
class HostMemoryPool;
class Memory;
struct Placement;
class RecordNotes;
class SampleCache;
class WorkerPool;

/// The workers of a process: explicit and shared. Pipelines that are given the same runtime share
/// its cores.
class Runtime {
 public:
  /// Throws `Error`: `invalid_argument` if options contradict each other or `Numa::require` cannot
  /// be had, `io` if the operating system refuses a thread, `internal` if hwloc cannot read the
  /// machine.
  explicit Runtime(const RuntimeOptions& options = {});
  /// Ends the workers. What hangs is let go, and keeps what it uses: at once if a pipeline has
  /// waited for it, else after half a second for all together.
  ~Runtime();

  /// What the workers are placed on: the machine, or this rank's share of it.
  const Topology& topology() const;
  /// Sentences for people that say why there are so many workers, and where.
  const std::vector<std::string>& placement() const;
  /// What is not as it should be, a sentence each: workers that could not be bound, and why; more
  /// workers (with those of other runtimes in this process) or ranks than cores.
  std::vector<std::string> warnings() const;
  /// How many cores are left free for threads that launch kernels.
  unsigned launch_cores() const;
  /// One pool per node that got workers, at least one. They help each other.
  const std::vector<std::unique_ptr<WorkerPool>>& pools() const { return pools_; }
  /// How many threads there are over all pools; their numbers are 0 .. workers()-1.
  unsigned workers() const;

  /// Sets how many workers are active over all pools, spread evenly; 0 pauses all work. With fewer
  /// than there are pools some pools pause: others make the samples of their slots, but pipelines
  /// that keep to the node of a paused pool pause, too.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;

  /// Says how many workers of `pools` (empty: of all) `pipeline` needs from now on; 0 counts as 1.
  /// In an adaptive runtime as many are active as all pipelines need together, each pipeline's
  /// dealt to those of its pools that have fewest active; a pool may be left without, as others
  /// help with what is not confined to it. In another runtime this does nothing.
  void need(const void* pipeline, unsigned workers, const std::vector<WorkerPool*>& pools = {});
  /// Says that `pipeline` needs none any more; `hangs` if it has waited for some in vain.
  void release(const void* pipeline, bool hangs = false);
  bool adaptive() const { return adaptive_; }

  /// What transforms note of a dataset's records, the same for all pipelines over it. The largest
  /// `bytes` of all calls is the memory that it may take; nullopt = a hundredth of what this
  /// process may use, of several ranks on a host its part of that. Null for 0 bytes. Notes go with
  /// the runtime; those of a dataset that is gone, with the next call.
  std::shared_ptr<RecordNotes> notes_of(const std::shared_ptr<const Dataset>& dataset,
                                        std::optional<std::size_t> bytes);

  /// What transforms keep of a dataset's records in memory, the same for all pipelines over it if
  /// their transforms have this fixed part, which is not empty. The largest `bytes` of all calls is
  /// the memory that it may take. It goes as notes do.
  std::shared_ptr<SampleCache> cache_of(const std::shared_ptr<const Dataset>& dataset,
                                        const FixedPart& part, std::size_t bytes);

  /// Returns `bytes` of host memory on `node` that `device` copies from at full speed; it may hold
  /// anything. Pinning memory is slow and may hold up other work of the driver, so a device may
  /// allow (`Device::keeps_host_memory`) that the runtime keeps it when a pipeline gives it back.
  /// Later pipelines over a device of that name get it again, if it is large enough, and parts of
  /// it if they need less. For each device and node the memory in use and kept is at most what was
  /// in use at one time, and `RuntimeOptions::kept_host_bytes` caps what is kept. Memory that was
  /// allocated at once counts as a whole, and is kept while a part of it is in use.
  /// An allocation that fails frees all that is kept and is tried again. What is kept is freed with
  /// the runtime. Throws as `Device::allocate_host`.
  Memory host_memory(Device& device, std::size_t bytes, const NumaNode& node);
  /// How many bytes of host memory are kept, over all devices and nodes.
  std::size_t kept_host_bytes() const;

 private:
  struct Need;
  struct Needs;
  struct Kept;

  /// Makes as many workers active as all needs together say.
  void activate(const std::vector<Need>& needs);
  void set_need(const void* pipeline, Need need);
  std::vector<WorkerPool*> all_pools() const;

  const bool adaptive_;
  std::atomic<bool> some_hang_{false};
  std::unique_ptr<Needs> needs_;
  std::unique_ptr<Kept> kept_;
  const std::shared_ptr<HostMemoryPool> host_memory_;
  const std::size_t standard_note_bytes_;
  std::unique_ptr<const Placement> placement_;
  std::vector<std::string> unbound_;
  std::vector<std::unique_ptr<WorkerPool>> pools_;
};

/// Makes a runtime that several pipelines can share. Throws as its constructor does.
std::shared_ptr<Runtime> make_runtime(const RuntimeOptions& options = {});

}  // namespace millrace
