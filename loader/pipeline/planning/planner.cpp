// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/planner.h"

namespace millrace {

void Planner::plan(HostSlot& host) {
  host.plan = schedule_.batch(host.plan.number).value();
  host.positions.resize(host.plan.size);
  host.records.indices.resize(host.plan.size);
  host.records.valid.resize(host.plan.size);
  for (std::size_t sample = 0; sample < host.plan.size; ++sample) {
    host.positions[sample] = schedule_.position(host.plan, sample);
    host.records.valid[sample] = schedule_.is_padding(host.plan, sample) ? 0 : 1;
  }
  host.sampler = sampler_for(host.plan.epoch);
  host.sampler->draw(host.positions, host.records.indices);
}

}  // namespace millrace
