// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "pipeline/planning/run_sampler.h"
#include "pipeline/slots/schedule.h"
#include "pipeline/slots/slots.h"

namespace millrace {

/// Chooses the records of each slot. For one thread at a time.
class Planner {
 public:
  Planner(std::shared_ptr<RunSampler> sampler, const Schedule& schedule)
      : sampler_(std::move(sampler)), schedule_(schedule) {}
  virtual ~Planner() = default;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// Fills in plan, positions, record indices, validity and sampler of the batch.
  /// `host.plan.number` must be the batch's number.
  virtual void plan(HostSlot& host);
  /// Constant, so any thread may read it.
  const Schedule& schedule() const { return schedule_; }

 protected:
  std::shared_ptr<const Sampler> sampler_for(std::uint64_t epoch) {
    return sampler_->for_epoch(epoch);
  }

 private:
  const std::shared_ptr<RunSampler> sampler_;
  const Schedule schedule_;
};

}  // namespace millrace
