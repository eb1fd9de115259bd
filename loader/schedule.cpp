// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <algorithm>
#include <string>

namespace millrace {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message, "plan"); }

}  // namespace

Schedule::Schedule(std::uint64_t records, const PipelineOptions& options)
    : records_(records),
      global_batch_(std::uint64_t{options.batch_size} * options.world),
      batches_per_epoch_(0),
      batch_size_(options.batch_size),
      epochs_(options.epochs),
      last_batch_(options.last_batch),
      rank_(options.rank),
      world_(options.world) {
  if (options.batch_size == 0) refuse("batch_size is 0; a batch needs at least one sample");
  if (options.world == 0) refuse("world is 0; there is at least one rank");
  if (options.rank >= options.world)
    refuse("rank is " + std::to_string(options.rank) + " of a world of " + std::to_string(options.world) +
           "; ranks count from 0");
  if (records == 0) refuse("the dataset is empty");
  batches_per_epoch_ = last_batch_ == LastBatch::drop ? records / global_batch_ : (records - 1) / global_batch_ + 1;
  if (batches_per_epoch_ == 0)
    refuse("the dataset has " + std::to_string(records) + " records, fewer than one global batch of " +
           std::to_string(global_batch_) + ", and last_batch is drop: there would never be a batch");
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
  plan.position_after = plan.last_in_epoch ? (epoch + 1) * records_ : epoch * records_ + start + count;
  if (last_batch_ == LastBatch::pad) {
    plan.size = batch_size_;
    plan.first_offset = start + std::uint64_t{rank_} * batch_size_;
  } else {
    const std::uint64_t first = count * rank_ / world_;
    plan.size = static_cast<std::size_t>(count * (rank_ + 1) / world_ - first);
    plan.first_offset = start + first;
  }
  return plan;
}

std::uint64_t Schedule::position(const BatchPlan& plan, std::size_t sample) const {
  return plan.epoch * records_ + (plan.first_offset + sample) % records_;
}

std::uint64_t Schedule::number_at(std::uint64_t position) const {
  const std::uint64_t offset = position % records_;
  if (offset % global_batch_ != 0 || offset / global_batch_ >= batches_per_epoch_)
    refuse("position is " + std::to_string(position) + ", where no batch begins: with " + std::to_string(records_) +
           " records and global batches of " + std::to_string(global_batch_) +
           " they begin at multiples of the batch within each epoch");
  return position / records_ * batches_per_epoch_ + offset / global_batch_;
}

}  // namespace millrace
