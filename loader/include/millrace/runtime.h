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

// Threads: all methods of a `Runtime` may be called by several threads at the same time. Lifetimes:
// a pipeline shares ownership of its runtime. Pools live as long as their runtime.

// Private types, outside the exported namespace.
namespace millrace {
class RuntimeServices;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// Whether workers are bound to the processors of their NUMA node.
enum class Numa {
  off,      ///< the operating system places them
  prefer,   ///< they are bound if possible; otherwise `Runtime::warnings` has the reason
  require,  ///< they are bound; the constructor of `Runtime` throws if this is impossible
};

struct RuntimeOptions {
  /// Number of worker threads over all nodes; 0 = one per usable processor
  /// (`Topology::usable_cpus`, which counts hardware threads), minus `launch_cores`.
  unsigned workers = 0;
  Numa numa = Numa::prefer;
  /// Adapt the number of active workers: each pipeline requests the fewest workers that keep its
  /// batches ready, and the other workers sleep.
  bool adaptive = false;
  /// Number of processors (hardware threads) to leave free for threads that launch kernels, because
  /// launches are delayed on a fully loaded host. At least one worker remains. nullopt = one per
  /// GPU that this rank drives if the rank has four processors or more, else 0. Ignored if
  /// `workers` is not 0.
  std::optional<unsigned> launch_cores{};
  /// Number of this process among the ranks on this host, from 0, and the number of these ranks.
  /// Each rank uses its share of the cores and GPUs.
  unsigned local_rank = 0;
  unsigned local_world = 1;
  /// Maximal number of unused bytes of host memory to keep for each device and NUMA node. A runtime
  /// keeps the memory of ended pipelines for later ones, if the device allows it
  /// (`Device::host_memory_is_reusable`), because pinning memory is slow. 0 = keep nothing. nullopt
  /// = no such limit. In any case, kept plus used memory never exceeds the peak of used memory.
  std::optional<std::size_t> kept_host_bytes{};
  /// The machine to place workers on; nullopt = the machine that this process runs on.
  std::optional<Topology> topology{};
};

class Dataset;
struct Placement;
class WorkerPool;

/// The worker threads of a process. Pipelines that are given the same runtime share its workers.
class Runtime {
 public:
  /// Throws `Error`: `invalid_argument` if options contradict each other or workers cannot be bound
  /// (`Numa::require`); `io` if the operating system refuses a thread; `internal` if hwloc cannot
  /// read the machine.
  explicit Runtime(const RuntimeOptions& options = {});
  /// Ends the workers. Workers that do not end within half a second in total are detached, and keep
  /// the objects that they use. If a pipeline has already waited for a hanging worker, the
  /// destructor waits at most 20 ms.
  ~Runtime();

  /// The machine that the workers are placed on, or this rank's share of it.
  const Topology& topology() const;
  /// Notes for people on the number of workers and their placement, one sentence each.
  const std::vector<std::string>& placement_notes() const;
  /// Warnings, one sentence each: workers that could not be bound, with the reason; more ranks than
  /// cores; more workers than cores, counted over all runtimes of this process.
  std::vector<std::string> warnings() const;
  /// Number of processors that are left free for threads that launch kernels.
  unsigned launch_cores() const;
  /// The pools, one per node that has workers; at least one. They help each other.
  const std::vector<std::unique_ptr<WorkerPool>>& pools() const { return pools_; }
  /// Number of threads over all pools; their numbers are 0 .. workers()-1.
  unsigned workers() const;

  /// Sets the number of active workers over all pools, spread evenly; 0 pauses all work. If
  /// `workers` is less than the number of pools, some pools pause. Workers of other pools then make
  /// the samples in the slots of a paused pool. A pipeline that uses only the node of a paused pool
  /// (`Nodes::device`) pauses too.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;

  bool adaptive() const { return adaptive_; }
  /// Bytes of host memory that are kept, over all devices and nodes.
  std::size_t kept_host_bytes() const;
  /// Frees the record hints and the caches (`PipelineOptions::index_bytes`, `cache_bytes`) that no
  /// pipeline uses now. Without this call they stay for later pipelines over the same dataset until
  /// the runtime is destroyed, or until the dataset is destroyed and another pipeline begins. To
  /// keep the hints, call `save_hints` first.
  void free_unused_caches();

 private:
  friend class RuntimeServices;

  const bool adaptive_;
  /// Services that only pipelines use.
  std::unique_ptr<RuntimeServices> services_;
  std::unique_ptr<const Placement> placement_;
  std::vector<std::string> binding_warnings_;
  std::vector<std::unique_ptr<WorkerPool>> pools_;
};

/// Makes a runtime that several pipelines can share. Throws like the constructor.
std::shared_ptr<Runtime> make_runtime(const RuntimeOptions& options = {});

/// Stores a dataset's record hints (`Sample::hint`) in a file beside each of the dataset's files.
/// Later calls of `open_dataset` find the hints there. They are the hints that the pipelines of
/// `runtime` have made for this dataset so far (`Sample::keep_hint`). For a record without such a
/// hint, the dataset's stored hint (`Dataset::stored_hint`) is used. If the dataset has none, or
/// was opened without hints (`OpenOptions::hints`), the hint in the file stays. Returns the number
/// of records with a hint. Pipelines may run during the call. Image transforms bind a hint to the
/// record's stored checksum.
///
/// Throws `Error`:
/// - `invalid_argument` if stored checksums are not compared (`OpenOptions::verify_checksums`), if
///   the dataset does not consist of files, or if its files were replaced since it was opened;
/// - `already_exists` if another writer writes hints of the same file at this moment, or if a file
///   of another kind has the name of the hints' file;
/// - `io` if a file cannot be read or written.
std::uint64_t save_hints(const std::shared_ptr<const Dataset>& dataset, Runtime& runtime);

}  // namespace millrace
