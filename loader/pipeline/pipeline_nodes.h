// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>
#include <millrace/device.h>
#include <millrace/pipeline.h>
#include <millrace/report.h>
#include <millrace/runtime.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/samples/sample_maker.h"
#include "pipeline/slots/run_meter.h"

namespace millrace {

/// Divides slots among pools in proportion to their workers. Each pool gets at least one slot while
/// there are enough. Returns the number of the pool for each slot.
std::vector<std::size_t> deal_slots(std::size_t slots, const std::vector<unsigned>& workers);

/// The NUMA nodes that a pipeline runs on: their pools, the node of each slot, and how many samples
/// each node made.
class PipelineNodes {
 public:
  PipelineNodes(Runtime& runtime, const Device& device, Nodes nodes, std::size_t slots);

  // Valid until the runtime ends. A worker that hangs may outlive it.
  const std::vector<WorkerPool*>& pools() const { return pools_; }
  WorkerPool& pool_of(std::size_t slot) const { return *pools_[places_[slot]]; }
  unsigned concurrency() const;
  std::optional<std::chrono::nanoseconds> delay() const;

  const NumaNode& node_of(std::size_t slot) const { return counts_[places_[slot]].node; }
  /// Whether other nodes' workers may fill its slots.
  Help help() const { return help_; }
  unsigned workers() const;
  /// Number of processors of its nodes, at least 1.
  unsigned cores() const;

  /// Checks on which node a slot's memory lies.
  void look_at(std::size_t slot, const Memory& memory);
  /// Counts `samples` samples that a worker made in this slot. Called by several workers at once.
  void made(std::size_t slot, unsigned worker, std::size_t samples);

  /// Returns the figures of each node so far.
  std::vector<NodeFigures> made_so_far(const SampleMaker& maker) const;
  /// Writes workers, nodes and warnings into the report, for the samples made since `base`.
  void fill(Report& report, const std::vector<NodeFigures>& now,
            const std::vector<NodeFigures>& base) const;

 private:
  struct Node {
    NumaNode node;
    unsigned first_worker = 0;
    unsigned workers = 0;
    std::size_t slots = 0;
    /// Pages of its slots' memory that lie on other nodes; nullopt if some pages' node is unknown.
    std::optional<std::size_t> pages_elsewhere{0};
    // Counters that order no other memory. Only samples made by helpers change them.
    std::atomic<std::uint64_t> elsewhere{0};
    std::atomic<std::uint64_t> by_helpers{0};
  };

  static std::string memory_warning(const Node& node);

  const bool several_nodes_;
  /// The device's node, if the options ask for that node but it has no workers.
  std::optional<int> missed_node_;
  std::vector<WorkerPool*> pools_;
  Help help_ = Help::allowed;
  /// One per pool. A deque, since atomics cannot be moved.
  std::deque<Node> counts_;
  /// Index into `pools_` and `counts_` for each slot.
  std::vector<std::size_t> places_;
};

}  // namespace millrace
