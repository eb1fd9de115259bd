// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetcher.h"

#include <algorithm>
#include <utility>

#include "base/exception_text.h"
#include "pipeline/blocking_call_scope.h"

namespace millrace {

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset,
                       std::shared_ptr<const RunSampler> sampler, const Schedule& schedule,
                       std::uint64_t first, std::size_t read_ahead, bool epoch_break)
    : dataset_(std::move(dataset)),
      name_(dataset_->name()),
      sampler_(std::move(sampler)),
      schedule_(schedule),
      read_ahead_(read_ahead),
      epoch_break_(epoch_break),
      next_(first),
      end_(first) {}

void Prefetcher::note_planned(std::uint64_t number) {
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  end_ = number + read_ahead_ + 1;
  const std::uint64_t per_epoch = schedule_.batches_per_epoch();
  if (epoch_break_) end_ = std::min(end_, (number / per_epoch + 1) * per_epoch);
  notify.add(changed_);
}

void Prefetcher::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

std::optional<std::uint64_t> Prefetcher::wait_for_batch() {
  MutexLock lock(mutex_);
  while (!closed_ && next_ >= end_) changed_.wait(mutex_);
  if (closed_) return std::nullopt;
  return next_++;
}

std::vector<std::string> Prefetcher::warnings() const {
  MutexLock lock(mutex_);
  if (failures_ == 0) return {};
  return {name_ + ": prefetch() threw: " + first_failure_ + " (" + std::to_string(failures_) +
          (failures_ == 1 ? " call" : " calls") + "); records are read without that hint"};
}

void Prefetcher::run(SlotQueues& queues) noexcept {
  try {
    while (const std::optional<std::uint64_t> number = wait_for_batch()) {
      if (queues.closed()) return;  // an error ended the run
      const BlockingCallScope scope(queues.forbids_blocking());
      if (const std::optional<BatchPlan> plan = schedule_.batch(*number)) announce(*plan);
      scope.check("plan");
    }
  } catch (...) {
    queues.fail("plan");
  }
}

void Prefetcher::announce(const BatchPlan& plan) {
  records_.resize(plan.size);
  for (std::size_t sample = 0; sample < plan.size; ++sample)
    records_[sample] = schedule_.position(plan, sample);
  sampler_->current()->draw(records_, records_);
  try {
    dataset_->prefetch(records_);
  } catch (...) {
    note_failure(text_of_exception());
  }
}

void Prefetcher::note_failure(const std::string& what) {
  MutexLock lock(mutex_);
  if (failures_++ == 0) first_failure_ = what;
}

}  // namespace millrace
