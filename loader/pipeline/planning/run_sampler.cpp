// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/run_sampler.h"

#include <utility>

#include "order/order_mode.h"

namespace millrace {

OrderHashes::OrderHashes(const Sampler& sampler)
    : epoch_size_(sampler.epoch_size()), hashes_{{0, sampler.hash()}} {
  for (const std::uint64_t epoch : sampler.reweighted_epochs())
    hashes_.push_back({epoch, sampler.hash(epoch)});
}

void OrderHashes::set(std::uint64_t epoch, std::uint64_t hash) {
  MutexLock lock(mutex_);
  set_from_epoch(hashes_, EpochHash{epoch, hash});
}

void OrderHashes::fill(State& state) const {
  MutexLock lock(mutex_);
  std::size_t index = index_in_epoch(hashes_, state.position / epoch_size_);
  state.sampler = hashes_[index].hash;
  state.new_weights.clear();
  while (++index < hashes_.size())
    state.new_weights.push_back({hashes_[index].first_epoch, hashes_[index].hash});
}

RunSampler::RunSampler(const Sampler& sampler)
    : hashes_(std::make_shared<OrderHashes>(sampler)),
      sampler_(std::make_shared<const Sampler>(sampler)) {}

std::shared_ptr<const Sampler> RunSampler::current() const {
  MutexLock lock(mutex_);
  return sampler_;
}

std::shared_ptr<const Sampler> RunSampler::for_epoch(std::uint64_t epoch) {
  std::shared_ptr<const Sampler> replaced;  // freed after the mutex is released
  MutexLock lock(mutex_);
  const std::vector<std::uint64_t> epochs = sampler_->reweighted_epochs();
  if (epochs.empty() || epochs.front() > epoch) return sampler_;
  replaced = std::exchange(sampler_, std::make_shared<const Sampler>(sampler_->from_epoch(epoch)));
  return sampler_;
}

std::uint64_t RunSampler::set_weights(std::vector<double> weights,
                                      const std::function<std::uint64_t()>& first_epoch) {
  // The table and the hash take time to make. They are made before the lock, which delays the
  // planner.
  const std::shared_ptr<const Sampler> before = current();
  const Sampler::PreparedWeights prepared = before->prepared(std::move(weights));
  const std::uint64_t hash = before->reweighted(0, prepared).hash();
  std::shared_ptr<const Sampler> replaced;  // freed after the mutex is released
  MutexLock lock(mutex_);
  const std::uint64_t epoch = first_epoch();
  replaced = std::exchange(sampler_,
                           std::make_shared<const Sampler>(sampler_->reweighted(epoch, prepared)));
  hashes_->set(epoch, hash);
  return epoch;
}

}  // namespace millrace
