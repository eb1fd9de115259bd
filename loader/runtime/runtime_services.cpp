// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_services.h"

#include <millrace/error.h>

#include <algorithm>
#include <utility>

#include "runtime/memory.h"

namespace millrace {

bool RuntimeServices::DatasetIdentity::is(const std::shared_ptr<const Dataset>& dataset) const {
  return address_ == dataset.get() && !owner_.owner_before(dataset) &&
         !dataset.owner_before(owner_);
}

RuntimeServices::RuntimeServices(const Pools& pools, const RuntimeOptions& options)
    : pools_(pools),
      adaptive_(options.adaptive),
      default_hint_bytes_(usable_memory() / 100 / std::max(options.local_world, 1U)),
      host_memory_(std::make_shared<HostMemoryPool>(options.kept_host_bytes)) {}

void RuntimeServices::require_owner() const {
  if (!process_.is_owner())
    throw Error(ErrorCode::invalid_argument,
                "the runtime was made before fork(), whose child does not have its threads; make a "
                "runtime in the child");
}

void RuntimeServices::activate(const std::vector<Need>& needs) {
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

void RuntimeServices::set_needed_workers(const void* pipeline, unsigned workers,
                                         const std::vector<WorkerPool*>& pools) {
  set_need(pipeline, {std::max(workers, 1U), pools.empty() ? all_pools() : pools});
}

void RuntimeServices::release(const void* pipeline, bool hangs) {
  if (hangs) some_hang_ = true;
  set_need(pipeline, {});
}

void RuntimeServices::set_need(const void* pipeline, Need need) {
  if (!adaptive_) return;
  const MutexLock lock(needs_mutex_);
  needs_.erase(pipeline);
  if (need.workers > 0) needs_[pipeline] = std::move(need);
  // If no pipeline needs workers, the active ones stay active, so that the next pipeline can start
  // at once.
  if (needs_.empty()) return;
  std::vector<Need> all;
  for (const auto& [one, needed] : needs_) all.push_back(needed);
  // Pipelines that can use few pools are served first.
  std::ranges::stable_sort(all, {}, [](const Need& one) { return one.pools.size(); });
  activate(all);
}

std::vector<WorkerPool*> RuntimeServices::all_pools() const {
  std::vector<WorkerPool*> all;
  for (const auto& pool : pools_) all.push_back(pool.get());
  return all;
}

void RuntimeServices::tidy() {
  const auto gone = [](const auto& one) { return one.dataset.expired(); };
  std::erase_if(hints_, gone);
  std::erase_if(budgets_, gone);
  std::erase_if(caches_, gone);
  std::erase_if(recoded_, gone);
}

void RuntimeServices::free_unused_caches() {
  const auto is_unused = [](const auto& one) { return one.kept.use_count() == 1; };
  const MutexLock lock(caches_mutex_);
  std::erase_if(hints_, is_unused);
  std::erase_if(caches_, is_unused);
  std::erase_if(recoded_, is_unused);
  std::erase_if(budgets_, is_unused);  // caches hold theirs
}

/// Returns the budget that all caches of a dataset share.
std::shared_ptr<CacheBudget> RuntimeServices::budget_of(
    const std::shared_ptr<const Dataset>& dataset) {
  auto found =
      std::ranges::find_if(budgets_, [&](const Budget& one) { return one.dataset.is(dataset); });
  if (found == budgets_.end())
    found = budgets_.insert(found, {dataset, std::make_shared<CacheBudget>()});
  return found->kept;
}

std::shared_ptr<RecordHints> RuntimeServices::hints_of(
    const std::shared_ptr<const Dataset>& dataset, std::optional<std::size_t> bytes) {
  const std::size_t allowed = bytes.value_or(default_hint_bytes_);
  const MutexLock lock(caches_mutex_);
  tidy();
  if (allowed == 0) return nullptr;
  auto found =
      std::ranges::find_if(hints_, [&](const Hints& one) { return one.dataset.is(dataset); });
  if (found == hints_.end())
    found = hints_.insert(found, {dataset, std::make_shared<RecordHints>()});
  found->kept->raise_limit(allowed);
  return found->kept;
}

std::shared_ptr<SampleCache> RuntimeServices::cache_of(
    const std::shared_ptr<const Dataset>& dataset, std::uint64_t fingerprint,
    std::size_t sample_bytes, std::size_t bytes) {
  const MutexLock lock(caches_mutex_);
  tidy();
  auto found = std::ranges::find_if(caches_, [&](const Cache& one) {
    return one.dataset.is(dataset) && one.fingerprint == fingerprint &&
           one.kept->sample_bytes() == sample_bytes;
  });
  if (found == caches_.end())
    found = caches_.insert(
        found, {dataset, fingerprint,
                std::make_shared<SampleCache>(dataset->size(), sample_bytes, budget_of(dataset))});
  found->kept->raise_limit(bytes);
  return found->kept;
}

std::shared_ptr<RecodedRecords> RuntimeServices::recoded_of(
    const std::shared_ptr<const Dataset>& dataset, std::uint64_t fingerprint, std::size_t bytes) {
  const MutexLock lock(caches_mutex_);
  tidy();
  auto found = std::ranges::find_if(recoded_, [&](const Recoded& one) {
    return one.dataset.is(dataset) && one.fingerprint == fingerprint;
  });
  if (found == recoded_.end())
    found = recoded_.insert(
        found, {dataset, fingerprint,
                std::make_shared<RecodedRecords>(dataset->size(), budget_of(dataset))});
  found->kept->raise_limit(bytes);
  return found->kept;
}

}  // namespace millrace
