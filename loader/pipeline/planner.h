// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/sampler.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/road/schedule.h"
#include "pipeline/road/slots.h"

namespace millrace {

/// Says which records the slots get, and tells the dataset some batches ahead. For one thread at a
/// time, batch after batch from `first` on.
class Planner {
 public:
  Planner(std::shared_ptr<const Dataset> dataset, Sampler sampler, const Schedule& schedule,
          std::uint64_t first, std::size_t read_ahead);

  /// Fills in plan, positions, records and validity of the batch whose number is in the slot's
  /// plan.
  void plan(HostSlot& host);

 private:
  /// Tells the dataset of the batches up to number `last`.
  void prefetch(std::uint64_t last);

  const std::shared_ptr<const Dataset> dataset_;
  const Sampler sampler_;
  const Schedule schedule_;
  const std::size_t read_ahead_;
  std::uint64_t next_prefetched_;
  std::vector<std::uint64_t> prefetched_;
};

}  // namespace millrace
