// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/schedule.h"

#include <algorithm>
#include <string>

namespace millrace {
namespace {

[[noreturn]] void refuse_options(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message, "plan");
}

}  // namespace

Schedule::Schedule(std::uint64_t records, const PipelineOptions& options)
    : global_batch_(options.ranks.global_batch_size > 0
                        ? options.ranks.global_batch_size
                        : std::uint64_t{options.batch_size} * options.ranks.this_process.world),
      epochs_(options.epochs),
      last_batch_(options.last_batch),
      rank_(options.ranks.this_process.rank),
      world_(options.ranks.this_process.world) {
  if (world_ == 0) refuse_options("ranks.world is 0; there is at least one rank");
  const std::uint64_t most =
      UINT64_MAX / 2 / world_;  // so that its product with `world_` does not overflow
  if (options.ranks.global_batch_size == 0 && options.batch_size > most)
    refuse_options("batch_size is " + std::to_string(options.batch_size) + ", more than " +
                   std::to_string(most) + " with a world of " + std::to_string(world_));
  if (options.ranks.global_batch_size > most)
    refuse_options("global_batch_size is " + std::to_string(options.ranks.global_batch_size) +
                   ", more than " + std::to_string(most) + " with a world of " +
                   std::to_string(world_));
  if (rank_ >= world_)
    refuse_options("ranks.rank is " + std::to_string(rank_) + " of a world of " +
                   std::to_string(world_) + "; ranks count from 0");
  if (global_batch_ == 0) refuse_options("batch_size is 0; a batch needs at least one sample");
  if (global_batch_ < world_)
    refuse_options("global_batch_size is " + std::to_string(global_batch_) +
                   ", which leaves some of the world's " + std::to_string(world_) +
                   " ranks without a sample");
  set_records(records);
}

void Schedule::set_records(std::uint64_t records) {
  records_ = records;
  batches_per_epoch_ =
      last_batch_ == LastBatch::drop ? records / global_batch_ : (records - 1) / global_batch_ + 1;
  if (batches_per_epoch_ == 0)
    refuse_options("an epoch has " + std::to_string(records) +
                   " samples, fewer than one global batch of " + std::to_string(global_batch_) +
                   ", and last_batch is drop: there would never be a batch");
}

Schedule Schedule::of_one_epoch(std::uint64_t records) const {
  Schedule schedule = *this;
  schedule.epochs_ = 1;
  schedule.set_records(records);
  return schedule;
}

std::uint64_t Schedule::end() const {
  const bool endless = epochs_ == 0 || epochs_ > UINT64_MAX / batches_per_epoch_;
  return endless ? UINT64_MAX : epochs_ * batches_per_epoch_;
}

std::optional<BatchPlan> Schedule::batch(std::uint64_t number) const {
  const std::uint64_t epoch = number / batches_per_epoch_;
  if (epochs_ > 0 && epoch >= epochs_) return std::nullopt;
  const std::uint64_t in_epoch = number % batches_per_epoch_;
  const std::uint64_t start = in_epoch * global_batch_;
  const std::uint64_t count = std::min(global_batch_, records_ - start);

  BatchPlan plan;
  plan.number = number;
  plan.epoch = epoch;
  plan.last_in_epoch = in_epoch + 1 == batches_per_epoch_;
  plan.global_size = static_cast<std::size_t>(count);
  plan.position_after =
      plan.last_in_epoch ? (epoch + 1) * records_ : epoch * records_ + start + count;
  const std::uint64_t dealt = last_batch_ == LastBatch::pad ? global_batch_ : count;
  const std::uint64_t first = dealt * rank_ / world_;
  plan.size = static_cast<std::size_t>(dealt * (rank_ + 1) / world_ - first);
  plan.first_offset = start + first;
  return plan;
}

std::uint64_t Schedule::position(const BatchPlan& plan, std::size_t sample) const {
  return plan.epoch * records_ + (plan.first_offset + sample) % records_;
}

std::uint64_t Schedule::number_at(std::uint64_t position) const {
  const std::uint64_t offset = position % records_;
  if (offset % global_batch_ != 0 || offset / global_batch_ >= batches_per_epoch_)
    refuse_options("position is " + std::to_string(position) +
                   ", where no batch begins: with epochs of " + std::to_string(records_) +
                   " samples and global batches of " + std::to_string(global_batch_) +
                   " they begin at multiples of the batch within each epoch");
  return position / records_ * batches_per_epoch_ + offset / global_batch_;
}

}  // namespace millrace
