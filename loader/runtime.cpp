// SPDX-License-Identifier: Apache-2.0
#include <millrace/runtime.h>

#include <algorithm>
#include <map>

#include "mutex.h"

namespace millrace {
namespace {

/// Deals `workers` to the nodes, always to the one with most processors per worker.
std::vector<unsigned> deal(unsigned workers, const std::vector<NumaNode>& nodes) {
  std::vector<unsigned> dealt(nodes.size(), 0);
  for (unsigned worker = 0; worker < workers; ++worker) {
    std::size_t best = 0;
    for (std::size_t node = 1; node < nodes.size(); ++node)
      if (nodes[node].cpus.size() * (dealt[best] + 1) > nodes[best].cpus.size() * (dealt[node] + 1)) best = node;
    ++dealt[best];
  }
  return dealt;
}

}  // namespace

/// What each pipeline needs.
class Runtime::Needs {
 public:
  /// Makes as many workers of `runtime` active as all pipelines need. With nothing needed all stay as they are: whoever comes next
  /// wants to start soon.
  void set(const void* pipeline, unsigned workers, Runtime& runtime) {
    MutexLock lock(mutex_);
    if (workers > 0) {
      needs_[pipeline] = workers;
    } else {
      needs_.erase(pipeline);
    }
    unsigned sum = 0;
    for (const auto& [one, needed] : needs_) sum += needed;
    // Each pool keeps a worker: there may be slots that only its workers fill.
    if (sum > 0) runtime.set_concurrency(std::max(sum, static_cast<unsigned>(runtime.pools().size())));
  }

 private:
  Mutex mutex_;
  std::map<const void*, unsigned> needs_ MILLRACE_GUARDED_BY(mutex_);
};

Runtime::Runtime(RuntimeOptions options)
    : adaptive_(options.adaptive), needs_(std::make_unique<Needs>()), topology_(read_topology()) {
  const unsigned workers = options.workers > 0 ? options.workers : topology_.cores;
  const std::vector<unsigned> dealt = deal(workers, topology_.nodes);
  unsigned first = 0;
  for (std::size_t node = 0; node < dealt.size(); ++node) {
    if (dealt[node] == 0) continue;
    pools_.push_back(
        std::make_unique<WorkerPool>(first, dealt[node], options.bind ? topology_.nodes[node].cpus : std::vector<int>()));
    first += dealt[node];
  }
}

Runtime::~Runtime() = default;

unsigned Runtime::workers() const {
  unsigned workers = 0;
  for (const auto& pool : pools_) workers += pool->workers();
  return workers;
}

void Runtime::set_concurrency(unsigned workers) {
  unsigned left = std::min(workers, this->workers());
  std::vector<unsigned> active(pools_.size(), 0);
  for (std::size_t pool = 0; left > 0; pool = (pool + 1) % pools_.size())
    if (active[pool] < pools_[pool]->workers()) {
      ++active[pool];
      --left;
    }
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) pools_[pool]->set_concurrency(active[pool]);
}

unsigned Runtime::concurrency() const {
  unsigned active = 0;
  for (const auto& pool : pools_) active += pool->concurrency();
  return active;
}

void Runtime::need(const void* pipeline, unsigned workers) {
  if (adaptive_) needs_->set(pipeline, std::max(workers, 1U), *this);
}

void Runtime::release(const void* pipeline) {
  if (adaptive_) needs_->set(pipeline, 0, *this);
}

std::optional<std::chrono::nanoseconds> Runtime::delay() const {
  std::chrono::nanoseconds sum{0};
  for (const auto& pool : pools_) {
    const auto delay = pool->delay();
    if (!delay) return std::nullopt;
    sum += *delay;
  }
  return sum;
}

std::shared_ptr<Runtime> make_runtime(RuntimeOptions options) { return std::make_shared<Runtime>(options); }

}  // namespace millrace
