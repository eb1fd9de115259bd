// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/placement.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>
#include <millrace/runtime.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "runtime/runtime_services.h"

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

std::string unbound_text(const NumaNode& node, const std::string& reason) {
  return "the workers of node " + std::to_string(node.number) +
         " are not bound to its processors " + cpu_list(node.cpus) + ": " + reason;
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : adaptive_(options.adaptive), services_(std::make_unique<RuntimeServices>(pools_, options)) {
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
    binding_warnings_.push_back(unbound_text(node, machine.synthetic ? "the topology is synthetic"
                                                   : node.cpus.empty()
                                                       ? "the node has no processors"
                                                       : pools_.back()->binding_error()));
    if (options.numa == Numa::require)
      throw Error(ErrorCode::invalid_argument,
                  "numa is require, but " + binding_warnings_.back() +
                      "; let the process bind its threads, or take numa = prefer");
  }
  WorkerPool::help_each_other(services_->all_pools());
}

Runtime::~Runtime() {
  for (const auto& pool : pools_) pool->begin_stop();
  const auto deadline =
      WorkerPool::Clock::now() + std::chrono::milliseconds(services_->some_hang() ? 20 : 500);
  for (const auto& pool : pools_) pool->stop(deadline);
}

const Topology& Runtime::topology() const { return placement_->topology; }
const std::vector<std::string>& Runtime::placement_notes() const { return placement_->reasons; }
unsigned Runtime::launch_cores() const { return placement_->launch_cores; }

std::vector<std::string> Runtime::warnings() const {
  std::vector<std::string> warnings = placement_->warnings;
  warnings.insert(warnings.end(), binding_warnings_.begin(), binding_warnings_.end());
  if (topology().synthetic) return warnings;
  const unsigned own = workers();
  const unsigned all = workers_on(topology().nodes);
  if (all > topology().usable_cpus && all > own)
    warnings.push_back("oversubscribed: this process has " + std::to_string(all) + " workers on " +
                       std::to_string(topology().usable_cpus) + " processors, " +
                       std::to_string(all - own) +
                       " of them in other runtimes; let its pipelines share one runtime");
  return warnings;
}

unsigned Runtime::workers() const { return placement_->total_workers(); }

void Runtime::set_concurrency(unsigned workers) { services_->activate(workers); }

unsigned Runtime::concurrency() const {
  unsigned active = 0;
  for (const auto& pool : pools_) active += pool->concurrency();
  return active;
}

std::size_t Runtime::kept_host_bytes() const { return services_->kept_host_bytes(); }

void Runtime::free_unused_caches() { services_->free_unused_caches(); }

std::shared_ptr<Runtime> make_runtime(const RuntimeOptions& options) {
  return std::make_shared<Runtime>(options);
}

}  // namespace millrace
