// SPDX-License-Identifier: Apache-2.0
#include "pipeline/record_caches.h"

#include <cstdint>
#include <optional>

#include "runtime/memory.h"
#include "runtime/runtime_services.h"

namespace millrace {
namespace {

/// Returns the reason why `cache` has no room for an entry of `needed` bytes. `kept` names the
/// entry.
template <typename Cache>
std::string no_room_text(const Cache& cache, const std::string& kept, std::size_t needed,
                         std::size_t bytes) {
  const std::size_t others = cache.other_bytes();
  if (others == 0 || needed > cache.limit())
    return "cache_bytes is " + std::to_string(bytes) + ", which has no room for a " + kept;
  return "caches of other transforms over this dataset hold " + std::to_string(others) +
         " of the " + std::to_string(cache.limit()) +
         " bytes of cache_bytes, which leaves no room for a " + kept;
}

}  // namespace

void add_cache(RecordCaches& caches, Runtime& runtime,
               const std::shared_ptr<const Dataset>& dataset, const Transform& transform,
               std::size_t bytes, std::vector<std::string>& warnings) {
  if (bytes == 0) return;
  const CacheablePrefix part = transform.cacheable_prefix();
  const std::optional<RecodedForm> form = transform.recoded_form();
  if (part.bytes == 0 && !form) {
    warnings.push_back("cache_bytes has no effect: " + part.why_none + ", and no sample is kept");
    return;
  }
  if (const std::uint64_t usable = usable_memory(); usable > 0 && bytes > usable)
    warnings.push_back("cache_bytes is " + std::to_string(bytes) + ", more than the " +
                       std::to_string(usable) + " bytes of memory that the process may use");
  if (dataset.use_count() == 0)
    warnings.push_back("cache_bytes has no effect on later pipelines: the pointer to " +
                       dataset->name() + " does not own the dataset (use_count() is 0), so each " +
                       "pipeline has a cache of its own; make the dataset with make_shared");
  RuntimeServices& services = RuntimeServices::of(runtime);
  std::string problem;
  if (part.bytes > 0) {
    caches.cache = services.cache_of(dataset, part.fingerprint, part.bytes, bytes);
    if (caches.cache->samples_that_fit() == 0)
      problem = no_room_text(*caches.cache, "sample of " + std::to_string(part.bytes) + " bytes",
                             part.bytes, bytes);
  } else {
    caches.recoded = services.recoded_of(dataset, form->fingerprint, bytes);
    if (!caches.recoded->has_table()) problem = no_room_text(*caches.recoded, "record", 0, bytes);
  }
  if (problem.empty()) return;
  warnings.push_back(problem + " besides the index of " + std::to_string(dataset->size()) +
                     " records; no " + (part.bytes > 0 ? "sample" : "record") + " is cached");
}

}  // namespace millrace
