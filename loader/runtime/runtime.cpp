// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset.h>
#include <millrace/detail/placement.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>
#include <millrace/runtime.h>
#include <millrace/transform.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "dataset/record_hints.h"
#include "dataset/sample_cache.h"
#include "runtime/host_memory_pool.h"
#include "runtime/memory.h"

namespace millrace {
namespace {

/// Whether a thread is a worker, by the name that `WorkerPool` gives it. `stat` is the thread's
/// /proc/.../stat: "ID (NAME) STATE PARENT GROUP SESSION TERMINAL FOREGROUND FLAGS ...". A joined
/// worker may be listed for a moment longer; it does not count.
bool is_worker(const std::filesystem::path& stat) {
  constexpr unsigned long exiting = 0x4;  // PF_EXITING
  std::ifstream file(stat);
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (line.find("(millrace-w") == std::string::npos || name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 0; field < 6; ++field) fields >> skipped;
  unsigned long flags = 0;
  fields >> flags;
  return (flags & exiting) == 0;
}

/// Whether a thread may run on a processor of these nodes.
bool may_run_on(pid_t thread, const std::vector<NumaNode>& nodes) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return true;
  return std::ranges::any_of(nodes, [&set](const NumaNode& node) {
    return std::ranges::any_of(node.cpus, [&set](int cpu) {
      return cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &set);
    });
  });
}

/// Returns how many workers of all runtimes in this process may run on these nodes.
unsigned workers_on(const std::vector<NumaNode>& nodes) {
  unsigned workers = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error))
    if (is_worker(task->path() / "stat") &&
        may_run_on(std::atoi(task->path().filename().c_str()), nodes))
      ++workers;
  return workers;
}

bool is_of(const std::shared_ptr<const Dataset>& dataset, const std::weak_ptr<const Dataset>& one) {
  return !one.owner_before(dataset) && !dataset.owner_before(one);
}

std::string unbound_text(const NumaNode& node, const std::string& reason) {
  return "the workers of node " + std::to_string(node.number) +
         " are not bound to its processors " + cpu_list(node.cpus) + ": " + reason;
}

}  // namespace

/// Number of workers that a pipeline needs, and the pools they may be of.
struct Runtime::Need {
  unsigned workers = 0;
  std::vector<WorkerPool*> pools{};
};

struct Runtime::Needs {
  Mutex mutex;
  std::map<const void*, Need> of_pipelines MILLRACE_GUARDED_BY(mutex);
};

/// Record hints and sample caches of datasets.
struct Runtime::Kept {
  struct Hints {
    std::weak_ptr<const Dataset> dataset;
    std::shared_ptr<RecordHints> kept;
  };
  struct Cache {
    std::weak_ptr<const Dataset> dataset;
    std::uint64_t fingerprint;
    std::shared_ptr<SampleCache> kept;
  };
  Mutex mutex;
  std::vector<Hints> hints MILLRACE_GUARDED_BY(mutex);
  std::vector<Cache> caches MILLRACE_GUARDED_BY(mutex);

  /// Drops the entries of datasets that have been destroyed.
  void tidy() MILLRACE_REQUIRES(mutex) {
    const auto gone = [](const auto& one) { return one.dataset.expired(); };
    std::erase_if(hints, gone);
    std::erase_if(caches, gone);
  }
};

Runtime::Runtime(const RuntimeOptions& options)
    : adaptive_(options.adaptive),
      needs_(std::make_unique<Needs>()),
      kept_(std::make_unique<Kept>()),
      host_memory_(std::make_shared<HostMemoryPool>(options.kept_host_bytes)),
      default_hint_bytes_(usable_memory() / 100 / std::max(options.local_world, 1U)) {
  const Topology machine = options.topology ? *options.topology : read_topology();
  placement_ = std::make_unique<const Placement>(place_workers(machine, options));
  unsigned first = 0;
  for (std::size_t number = 0; number < placement_->workers.size(); ++number) {
    const unsigned workers = placement_->workers[number];
    const NumaNode& node = topology().nodes[number];
    if (workers == 0) continue;
    const bool bind = options.numa != Numa::off && !machine.synthetic;
    pools_.push_back(std::make_unique<WorkerPool>(
        first, workers, bind ? node.cpus : std::vector<int>(), node.number));
    first += workers;
    if (options.numa == Numa::off || pools_.back()->bound()) continue;
    unbound_.push_back(unbound_text(node, machine.synthetic   ? "the topology is synthetic"
                                          : node.cpus.empty() ? "the node has no processors"
                                                              : pools_.back()->binding_error()));
    if (options.numa == Numa::require)
      throw Error(ErrorCode::invalid_argument,
                  "numa is require, but " + unbound_.back() +
                      "; let the process bind its threads, or take numa = prefer");
  }
  WorkerPool::help_each_other(all_pools());
}

Runtime::~Runtime() {
  for (const auto& pool : pools_) pool->begin_stop();
  const auto deadline = WorkerPool::Clock::now() + std::chrono::milliseconds(some_hang_ ? 20 : 500);
  for (const auto& pool : pools_) pool->stop(deadline);
}

const Topology& Runtime::topology() const { return placement_->topology; }
const std::vector<std::string>& Runtime::placement() const { return placement_->reasons; }
unsigned Runtime::launch_cores() const { return placement_->launch_cores; }

std::vector<std::string> Runtime::warnings() const {
  std::vector<std::string> warnings = placement_->warnings;
  warnings.insert(warnings.end(), unbound_.begin(), unbound_.end());
  if (topology().synthetic) return warnings;
  const unsigned own = workers();
  const unsigned all = workers_on(topology().nodes);
  if (all > topology().cores && all > own)
    warnings.push_back("oversubscribed: this process has " + std::to_string(all) + " workers on " +
                       std::to_string(topology().cores) + " processors, " +
                       std::to_string(all - own) +
                       " of them in other runtimes; let its pipelines share one runtime");
  return warnings;
}

unsigned Runtime::workers() const { return placement_->total_workers(); }

void Runtime::set_concurrency(unsigned workers) { activate({{workers, all_pools()}}); }

void Runtime::activate(const std::vector<Need>& needs) {
  std::map<WorkerPool*, unsigned> active;
  for (const Need& need : needs)
    for (unsigned worker = 0; worker < need.workers; ++worker) {
      WorkerPool* fewest = nullptr;
      for (WorkerPool* pool : need.pools)
        if (active[pool] < pool->workers() && (fewest == nullptr || active[pool] < active[fewest]))
          fewest = pool;
      if (fewest == nullptr) break;
      ++active[fewest];
    }
  for (const auto& pool : pools_) pool->set_concurrency(active[pool.get()]);
}

unsigned Runtime::concurrency() const {
  unsigned active = 0;
  for (const auto& pool : pools_) active += pool->concurrency();
  return active;
}

void Runtime::need(const void* pipeline, unsigned workers, const std::vector<WorkerPool*>& pools) {
  set_need(pipeline, {std::max(workers, 1U), pools.empty() ? all_pools() : pools});
}

void Runtime::release(const void* pipeline, bool hangs) {
  if (hangs) some_hang_ = true;
  set_need(pipeline, {});
}

void Runtime::set_need(const void* pipeline, Need need) {
  if (!adaptive_) return;
  MutexLock lock(needs_->mutex);
  needs_->of_pipelines.erase(pipeline);
  if (need.workers > 0) needs_->of_pipelines[pipeline] = std::move(need);
  // If no pipeline needs workers, keeps the active ones: the next pipeline can start at once.
  if (needs_->of_pipelines.empty()) return;
  std::vector<Need> all;
  for (const auto& [one, needed] : needs_->of_pipelines) all.push_back(needed);
  // Pipelines that can use few pools come first.
  std::ranges::stable_sort(all, {}, [](const Need& one) { return one.pools.size(); });
  activate(all);
}

std::shared_ptr<RecordHints> Runtime::hints_of(const std::shared_ptr<const Dataset>& dataset,
                                               std::optional<std::size_t> bytes) {
  const std::size_t allowed = bytes.value_or(default_hint_bytes_);
  const MutexLock lock(kept_->mutex);
  kept_->tidy();
  if (allowed == 0) return nullptr;
  auto found = std::ranges::find_if(
      kept_->hints, [&](const Kept::Hints& one) { return is_of(dataset, one.dataset); });
  if (found == kept_->hints.end())
    found = kept_->hints.insert(found, {dataset, std::make_shared<RecordHints>()});
  found->kept->allow(allowed);
  return found->kept;
}

std::shared_ptr<SampleCache> Runtime::cache_of(const std::shared_ptr<const Dataset>& dataset,
                                               const CacheablePrefix& part, std::size_t bytes) {
  const MutexLock lock(kept_->mutex);
  kept_->tidy();
  auto found = std::ranges::find_if(kept_->caches, [&](const Kept::Cache& one) {
    return is_of(dataset, one.dataset) && one.fingerprint == part.fingerprint &&
           one.kept->sample_bytes() == part.bytes;
  });
  if (found == kept_->caches.end())
    found = kept_->caches.insert(
        found,
        {dataset, part.fingerprint, std::make_shared<SampleCache>(dataset->size(), part.bytes)});
  found->kept->allow(bytes);
  return found->kept;
}

Memory Runtime::host_memory(Device& device, std::size_t bytes, const NumaNode& node) {
  return host_memory_->take(device, bytes, node);
}

std::size_t Runtime::kept_host_bytes() const { return host_memory_->kept_bytes(); }

std::vector<WorkerPool*> Runtime::all_pools() const {
  std::vector<WorkerPool*> all;
  for (const auto& pool : pools_) all.push_back(pool.get());
  return all;
}

std::shared_ptr<Runtime> make_runtime(const RuntimeOptions& options) {
  return std::make_shared<Runtime>(options);
}

}  // namespace millrace
