// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/device.h>
#include <millrace/runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/owner_process.h"
#include "cache/cache_budget.h"
#include "cache/recoded_records.h"
#include "cache/record_hints.h"
#include "cache/sample_cache.h"
#include "runtime/host_memory_pool.h"

namespace millrace {

/// The part of a `Runtime` that pipelines use: number of active workers, caches of records, and
/// host memory. All methods may be called by several threads at the same time.
class RuntimeServices {
 public:
  using Pools = std::vector<std::unique_ptr<WorkerPool>>;

  /// `pools` are the runtime's pools. They must outlive the last call of this object.
  RuntimeServices(const Pools& pools, const RuntimeOptions& options);
  static RuntimeServices& of(Runtime& runtime) { return *runtime.services_; }

  /// Throws `Error` (`invalid_argument`) in a child of fork(), which has none of the workers.
  void require_owner() const;

  /// Sets the number of workers of `pools` (empty: of all) that `pipeline` needs from now on; 0
  /// counts as 1. An adaptive runtime keeps as many workers active as all pipelines need together.
  /// Each pipeline's workers are assigned to those of its pools that have the fewest active
  /// workers. A pool may get 0 active workers: other pools' workers help with its jobs if these
  /// allow it. If the runtime is not adaptive, this call does nothing.
  void set_needed_workers(const void* pipeline, unsigned workers,
                          const std::vector<WorkerPool*>& pools = {});
  /// Releases the workers that `pipeline` needed. `hangs` = some of them did not finish in time.
  void release(const void* pipeline, bool hangs = false);
  bool some_hang() const { return some_hang_; }
  /// Activates `workers` workers, spread over all pools.
  void activate(unsigned workers) { activate({{workers, all_pools()}}); }
  std::vector<WorkerPool*> all_pools() const;

  /// Record hints of a dataset, shared by all pipelines over it. The memory limit is the largest
  /// `bytes` of all calls; nullopt = 1% of the memory that this process may use, divided by the
  /// number of ranks on the host. Returns null for 0 bytes. Hints are freed with the runtime; those
  /// of a destroyed dataset are freed by the next call.
  std::shared_ptr<RecordHints> hints_of(const std::shared_ptr<const Dataset>& dataset,
                                        std::optional<std::size_t> bytes);

  /// Sample cache of a dataset. It is shared by all pipelines over the dataset whose transforms
  /// have a cacheable prefix of this fingerprint and of `sample_bytes` (> 0) per sample. The memory
  /// limit is the largest `bytes` of all calls; all caches of a dataset share it. It is freed like
  /// hints.
  std::shared_ptr<SampleCache> cache_of(const std::shared_ptr<const Dataset>& dataset,
                                        std::uint64_t fingerprint, std::size_t sample_bytes,
                                        std::size_t bytes);

  /// Cache of a dataset's recoded records, in the form that has this fingerprint. It is shared by
  /// all pipelines over the dataset whose transforms make this form. Limit and lifetime are those
  /// of `cache_of`.
  std::shared_ptr<RecodedRecords> recoded_of(const std::shared_ptr<const Dataset>& dataset,
                                             std::uint64_t fingerprint, std::size_t bytes);

  /// Frees the hints and caches that nobody else holds.
  void free_unused_caches();

  /// Returns `bytes` of host memory on `node` that `device` copies from at full speed. Its content
  /// is undefined. `HostMemoryPool` says which memory is kept and reused. Throws like
  /// `Device::allocate_host`.
  Memory host_memory(Device& device, std::size_t bytes, const NumaNode& node) {
    return host_memory_->take(device, bytes, node);
  }
  std::size_t kept_host_bytes() const { return host_memory_->kept_bytes(); }

 private:
  /// Number of workers that a pipeline needs, and the pools that may supply them.
  struct Need {
    unsigned workers = 0;
    std::vector<WorkerPool*> pools{};
  };
  /// Identity of a dataset object. One owner may hold several datasets, and a later dataset may
  /// have the address of a destroyed one. So both owner and address are compared.
  class DatasetIdentity {
   public:
    DatasetIdentity(const std::shared_ptr<const Dataset>& dataset)
        : owner_(dataset), address_(dataset.get()) {}
    bool is(const std::shared_ptr<const Dataset>& dataset) const;
    bool expired() const { return owner_.expired(); }

   private:
    std::weak_ptr<const Dataset> owner_;
    const Dataset* address_;
  };
  struct Hints {
    DatasetIdentity dataset;
    std::shared_ptr<RecordHints> kept;
  };
  struct Budget {
    DatasetIdentity dataset;
    std::shared_ptr<CacheBudget> kept;
  };
  struct Cache {
    DatasetIdentity dataset;
    std::uint64_t fingerprint;
    std::shared_ptr<SampleCache> kept;
  };
  struct Recoded {
    DatasetIdentity dataset;
    std::uint64_t fingerprint;
    std::shared_ptr<RecodedRecords> kept;
  };

  /// Activates as many workers as all needs together require.
  void activate(const std::vector<Need>& needs);
  void set_need(const void* pipeline, Need need);
  /// Drops the caches of datasets that have been destroyed.
  void tidy() MILLRACE_REQUIRES(caches_mutex_);
  std::shared_ptr<CacheBudget> budget_of(const std::shared_ptr<const Dataset>& dataset)
      MILLRACE_REQUIRES(caches_mutex_);

  const OwnerProcess process_;
  const Pools& pools_;
  const bool adaptive_;
  const std::size_t default_hint_bytes_;
  const std::shared_ptr<HostMemoryPool> host_memory_;
  std::atomic<bool> some_hang_{false};

  Mutex needs_mutex_;
  std::map<const void*, Need> needs_ MILLRACE_GUARDED_BY(needs_mutex_);
  Mutex caches_mutex_;
  std::vector<Hints> hints_ MILLRACE_GUARDED_BY(caches_mutex_);
  std::vector<Budget> budgets_ MILLRACE_GUARDED_BY(caches_mutex_);
  std::vector<Cache> caches_ MILLRACE_GUARDED_BY(caches_mutex_);
  std::vector<Recoded> recoded_ MILLRACE_GUARDED_BY(caches_mutex_);
};

}  // namespace millrace
