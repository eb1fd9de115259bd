// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline_nodes.h"

#include <millrace/detail/numa_memory.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace millrace {
namespace {

/// Returns the pools that fill the slots, and whether other pools may help them.
std::pair<std::vector<WorkerPool*>, Help> choose(const Runtime& runtime, const Device& device,
                                                 Nodes nodes) {
  std::vector<WorkerPool*> all;
  std::vector<WorkerPool*> of_device;
  const std::optional<int> node = nodes == Nodes::device ? device.numa_node() : std::nullopt;
  for (const auto& pool : runtime.pools()) {
    all.push_back(pool.get());
    if (node && pool->node() == node) of_device.push_back(pool.get());
  }
  if (of_device.empty()) return {std::move(all), Help::allowed};
  return {std::move(of_device), Help::never};
}

/// Returns a pool's node, or the runtime's first node if the pool has no node number.
NumaNode node_of(const WorkerPool& pool, const Topology& topology) {
  const auto found =
      std::find_if(topology.nodes.begin(), topology.nodes.end(),
                   [&pool](const NumaNode& node) { return node.number == pool.node(); });
  return found == topology.nodes.end() ? topology.nodes.front() : *found;
}

std::uint64_t difference(std::uint64_t more, std::uint64_t less) {
  return more > less ? more - less : 0;
}

}  // namespace

std::vector<std::size_t> deal_slots(std::size_t slots, const std::vector<unsigned>& workers) {
  std::vector<std::size_t> dealt(workers.size(), 0);
  std::vector<std::size_t> places;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    std::size_t best = 0;
    for (std::size_t pool = 1; pool < workers.size(); ++pool) {
      if (dealt[pool] > 0 && dealt[best] == 0) continue;
      // The slot is given to a pool without slots, if there is one, else to the pool with the most
      // workers per slot.
      const bool first = dealt[pool] == 0 && dealt[best] > 0;
      if (first || workers[pool] * (dealt[best] + 1) > workers[best] * (dealt[pool] + 1))
        best = pool;
    }
    ++dealt[best];
    places.push_back(best);
  }
  return places;
}

PipelineNodes::PipelineNodes(Runtime& runtime, const Device& device, Nodes nodes, std::size_t slots)
    : several_nodes_(runtime.topology().nodes.size() > 1) {
  std::tie(pools_, help_) = choose(runtime, device, nodes);
  if (nodes == Nodes::device && help_ == Help::allowed) missed_node_ = device.numa_node();
  std::vector<unsigned> workers;
  for (const WorkerPool* pool : pools_) {
    Node& node = counts_.emplace_back();
    node.node = millrace::node_of(*pool, runtime.topology());
    node.first_worker = pool->first_worker();
    node.workers = pool->workers();
    workers.push_back(pool->workers());
  }
  places_ = deal_slots(slots, workers);
  for (const std::size_t place : places_) ++counts_[place].slots;
}

unsigned PipelineNodes::concurrency() const {
  unsigned active = 0;
  for (const WorkerPool* pool : pools_) active += pool->concurrency();
  return active;
}

std::optional<std::chrono::nanoseconds> PipelineNodes::delay() const {
  std::chrono::nanoseconds sum{0};
  for (const WorkerPool* pool : pools_) {
    const auto delay = pool->delay();
    if (!delay) return std::nullopt;
    sum += *delay;
  }
  return sum;
}

unsigned PipelineNodes::workers() const {
  unsigned workers = 0;
  for (const Node& node : counts_) workers += node.workers;
  return workers;
}

unsigned PipelineNodes::cores() const {
  std::size_t cores = 0;
  for (const Node& node : counts_) cores += node.node.cpus.size();
  return static_cast<unsigned>(std::max<std::size_t>(cores, 1));
}

void PipelineNodes::count_pages(std::size_t slot, const Memory& memory) {
  Node& node = counts_[places_[slot]];
  const std::optional<std::size_t> elsewhere = pages_elsewhere(memory, node.node.number);
  node.pages_elsewhere = elsewhere && node.pages_elsewhere
                             ? std::optional(*node.pages_elsewhere + *elsewhere)
                             : std::nullopt;
}

void PipelineNodes::made(std::size_t slot, unsigned worker, std::size_t samples) {
  const auto has_worker = [worker](const Node& node) {
    return worker >= node.first_worker && worker < node.first_worker + node.workers;
  };
  Node& slots_node = counts_[places_[slot]];
  if (has_worker(slots_node)) return;
  slots_node.by_helpers.fetch_add(samples, std::memory_order_relaxed);
  const auto workers_node = std::find_if(counts_.begin(), counts_.end(), has_worker);
  if (workers_node != counts_.end())
    workers_node->elsewhere.fetch_add(samples, std::memory_order_relaxed);
}

std::vector<NodeFigures> PipelineNodes::made_so_far(const SampleMaker& maker) const {
  std::vector<NodeFigures> made;
  for (const Node& node : counts_)
    made.push_back({maker.samples_by(node.first_worker, node.workers),
                    node.elsewhere.load(std::memory_order_relaxed),
                    node.by_helpers.load(std::memory_order_relaxed)});
  return made;
}

void PipelineNodes::fill(Report& report, const std::vector<NodeFigures>& now,
                         const std::vector<NodeFigures>& base) const {
  report.workers = workers();
  report.workers_bound = true;
  if (missed_node_)
    report.warnings.push_back("The device is on NUMA node " + std::to_string(*missed_node_) +
                              ", which has no workers: its batches are made on other nodes, "
                              "which it reaches more slowly. Let the process use that node's "
                              "processors.");
  for (std::size_t place = 0; place < counts_.size(); ++place) {
    const Node& node = counts_[place];
    // The counts are read one after another: workers may have increased one of them in between.
    const std::uint64_t elsewhere = now[place].elsewhere - base[place].elsewhere;
    NodeReport& node_report = report.nodes.emplace_back();
    node_report.node = node.node.number;
    node_report.workers = node.workers;
    node_report.workers_bound = pools_[place]->bound();
    node_report.slots = node.slots;
    node_report.samples_by_helpers = now[place].by_helpers - base[place].by_helpers;
    node_report.samples = difference(now[place].by_workers - base[place].by_workers, elsewhere) +
                          node_report.samples_by_helpers;
    if (node.slots > 0 && node.pages_elsewhere)
      node_report.memory_on_node = *node.pages_elsewhere == 0;
    report.workers_bound = report.workers_bound && node_report.workers_bound;
    // On a machine with one node, all memory is on that node.
    if (node.slots > 0 && several_nodes_ && node_report.memory_on_node != true)
      report.warnings.push_back(memory_warning(node));
  }
}

std::string PipelineNodes::memory_warning(const Node& node) {
  const std::string slots = "the host slots of NUMA node " + std::to_string(node.node.number);
  if (!node.pages_elsewhere)
    return "It is not known whether " + slots +
           " lie on that node: the system does not report it (move_pages, which containers may "
           "refuse). Allow that call, or compare with a run on that node alone.";
  return std::to_string(*node.pages_elsewhere) + " pages of " + slots +
         " lie on other nodes, which its workers and the device reach more slowly. Free memory on "
         "that node, or let the process keep its memory there (mbind, which containers may "
         "refuse).";
}

}  // namespace millrace
