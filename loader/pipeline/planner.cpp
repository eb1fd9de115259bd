// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planner.h"

#include <optional>
#include <utility>

namespace millrace {

Planner::Planner(std::shared_ptr<const Dataset> dataset, Sampler sampler, const Schedule& schedule,
                 std::uint64_t first, std::size_t read_ahead)
    : dataset_(std::move(dataset)),
      sampler_(std::move(sampler)),
      schedule_(schedule),
      read_ahead_(read_ahead),
      next_prefetched_(first) {}

void Planner::plan(HostSlot& host) {
  host.plan = schedule_.batch(host.plan.number).value();
  host.positions.resize(host.plan.size);
  host.records.indices.resize(host.plan.size);
  host.records.valid.resize(host.plan.size);
  for (std::size_t sample = 0; sample < host.plan.size; ++sample) {
    host.positions[sample] = schedule_.position(host.plan, sample);
    host.records.valid[sample] = schedule_.is_padding(host.plan, sample) ? 0 : 1;
  }
  sampler_.draw(host.positions, host.records.indices);
  prefetch(host.plan.number + read_ahead_);
}

void Planner::prefetch(std::uint64_t last) {
  for (; next_prefetched_ <= last; ++next_prefetched_) {
    const std::optional<BatchPlan> plan = schedule_.batch(next_prefetched_);
    if (!plan) return;
    prefetched_.resize(plan->size);
    for (std::size_t sample = 0; sample < plan->size; ++sample)
      prefetched_[sample] = schedule_.position(*plan, sample);
    sampler_.draw(prefetched_, prefetched_);
    dataset_->prefetch(prefetched_);
  }
}

}  // namespace millrace
