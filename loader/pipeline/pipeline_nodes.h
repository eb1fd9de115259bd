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

/// Divides slots among pools in proportion to their workers. Each pool gets at least one slot if
/// there are enough slots. Returns the index of the pool for each slot.
std::vector<std::size_t> deal_slots(std::size_t slots, const std::vector<unsigned>& workers);

/// The NUMA nodes that a pipeline runs on: their pools, the node of each slot, and how many samples
/// each node made.
class PipelineNodes {
 public:
  PipelineNodes(Runtime& runtime, const Device& device, Nodes nodes, std::size_t slots);

  // The pools are valid until the runtime ends. A worker that hangs may outlive the runtime.
  const std::vector<WorkerPool*>& pools() const { return pools_; }
  WorkerPool& pool_of(std::size_t slot) const { return *pools_[places_[slot]]; }
  unsigned concurrency() const;
  std::optional<std::chrono::nanoseconds> delay() const;

  const NumaNode& node_of(std::size_t slot) const { return counts_[places_[slot]].node; }
  /// Whether workers of other nodes may make samples in this pipeline's slots.
  Help help() const { return help_; }
  unsigned workers() const;
  /// Number of processors of its nodes, at least 1.
  unsigned cores() const;

  /// Counts the pages of a slot's memory that are not on the slot's node.
  void count_pages(std::size_t slot, const Memory& memory);
  /// Counts `samples` samples that a worker made in this slot. Several workers may call it at once.
  void made(std::size_t slot, unsigned worker, std::size_t samples);

  /// Returns the figures of each node so far.
  std::vector<NodeFigures> made_so_far(const SampleMaker& maker) const;
  /// Writes workers, nodes and warnings into the report. `base` are the figures at the report's
  /// beginning, `now` those at its end.
  void fill(Report& report, const std::vector<NodeFigures>& now,
            const std::vector<NodeFigures>& base) const;

 private:
  struct Node {
    NumaNode node;
    unsigned first_worker = 0;
    unsigned workers = 0;
    std::size_t slots = 0;
    /// Number of its slots' pages that are on other nodes; nullopt if the node of a page is
    /// unknown.
    std::optional<std::size_t> pages_elsewhere{0};
    // Counters as in `NodeFigures`; they order no other memory. Only samples that helpers make
    // change them.
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
