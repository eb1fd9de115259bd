// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace millrace {

/// One batch as it will be: which positions of the global sequence this rank's samples have.
struct BatchPlan {
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;
  bool last_in_epoch = false;
  /// This rank's samples, padding included.
  std::size_t size = 0;
  /// Samples over all ranks, without padding.
  std::size_t global_size = 0;
  /// Offset in the epoch of this rank's first sample; may lie beyond the epoch's end where all of
  /// it is padding.
  std::uint64_t first_offset = 0;
  /// Global position behind this batch, all ranks.
  std::uint64_t position_after = 0;
};

/// Cuts the global sequence into batches: a pure function of the batch's number.
class Schedule {
 public:
  /// Epochs of `records` samples. Throws `Error` (`invalid_argument`) for options that contradict
  /// each other or the number of records.
  Schedule(std::uint64_t records, const PipelineOptions& options);

  /// Samples of this rank's largest batch: what its slots must hold.
  std::size_t largest_batch() const {
    return static_cast<std::size_t>((global_batch_ + world_ - 1) / world_);
  }
  std::uint64_t global_batch() const { return global_batch_; }

  std::uint64_t batches_per_epoch() const { return batches_per_epoch_; }

  /// The number behind the last batch; UINT64_MAX if there is none.
  std::uint64_t end() const;
  /// The batch of that number; nullopt after the last epoch.
  std::optional<BatchPlan> batch(std::uint64_t number) const;
  /// The global position of a sample of a batch. Padding has the position of the sample of the
  /// epoch that it repeats.
  std::uint64_t position(const BatchPlan& plan, std::size_t sample) const;
  bool is_padding(const BatchPlan& plan, std::size_t sample) const {
    return plan.first_offset + sample >= records_;
  }
  /// The batch that begins at a global position. Throws `Error` (`invalid_argument`) if none
  /// begins.
  std::uint64_t number_at(std::uint64_t position) const;

 private:
  std::uint64_t records_;
  std::uint64_t global_batch_;
  std::uint64_t batches_per_epoch_;
  std::uint64_t epochs_;
  LastBatch last_batch_;
  std::uint32_t rank_;
  std::uint32_t world_;
};

}  // namespace millrace
