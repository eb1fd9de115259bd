// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sampler.h>

#include <utility>

#include "pipeline/road/schedule.h"
#include "pipeline/road/slots.h"

namespace millrace {

/// Says which records the slots get. For one thread at a time.
class Planner {
 public:
  Planner(Sampler sampler, const Schedule& schedule)
      : sampler_(std::move(sampler)), schedule_(schedule) {}

  /// Fills in plan, positions, records and validity of the batch whose number is in the slot's
  /// plan.
  void plan(HostSlot& host);
  /// Never changes, so any thread may look at it.
  const Schedule& schedule() const { return schedule_; }

 private:
  const Sampler sampler_;
  const Schedule schedule_;
};

}  // namespace millrace
