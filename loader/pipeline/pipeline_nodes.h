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

#include "pipeline/road/run_meter.h"
#include "pipeline/samples/sample_maker.h"

namespace millrace {

/// Deals slots to pools in proportion to their workers, one each at least as far as the slots go:
/// for each slot the number of its pool.
std::vector<std::size_t> deal_slots(std::size_t slots, const std::vector<unsigned>& workers);

/// The NUMA nodes that a pipeline runs on: their pools, which of its slots lie where, and who made
/// the samples in them.
class PipelineNodes {
 public:
  PipelineNodes(Runtime& runtime, const Device& device, Nodes nodes, std::size_t slots);

  // Until the runtime ends, which what hangs in a worker may outlive.
  const std::vector<WorkerPool*>& pools() const { return pools_; }
  WorkerPool& pool_of(std::size_t slot) const { return *pools_[places_[slot]]; }
  unsigned concurrency() const;
  std::optional<std::chrono::nanoseconds> delay() const;

  const NumaNode& node_of(std::size_t slot) const { return counts_[places_[slot]].node; }
  /// Whether other nodes' workers may fill its slots.
  Help help() const { return help_; }
  unsigned workers() const;
  /// Processors that its nodes have, at least one.
  unsigned cores() const;

  /// Looks where a slot's memory lies.
  void look_at(std::size_t slot, const Memory& memory);
  /// A worker has made so many samples in this slot. From workers, at once.
  void made(std::size_t slot, unsigned worker, std::size_t samples);

  /// Per node, so far.
  std::vector<NodeFigures> made_so_far(const SampleMaker& maker) const;
  /// Writes the report's workers, nodes and warnings, of the samples made since `base`.
  void fill(Report& report, const std::vector<NodeFigures>& now,
            const std::vector<NodeFigures>& base) const;

 private:
  struct Node {
    NumaNode node;
    unsigned first_worker = 0;
    unsigned workers = 0;
    std::size_t slots = 0;
    /// Of its slots' memory; none where it is not known of all.
    std::optional<std::size_t> pages_elsewhere{0};
    // Counts that order nothing; only samples that helpers make touch them.
    std::atomic<std::uint64_t> elsewhere{0};
    std::atomic<std::uint64_t> by_helpers{0};
  };

  static std::string memory_warning(const Node& node);

  const bool several_nodes_;
  /// The device's node, where it was to be kept to but has no workers.
  std::optional<int> missed_node_;
  std::vector<WorkerPool*> pools_;
  Help help_ = Help::allowed;
  /// As `pools_`; a deque, since atomics do not move.
  std::deque<Node> counts_;
  /// Per slot: its place in both.
  std::vector<std::size_t> places_;
};

}  // namespace millrace
