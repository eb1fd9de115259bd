// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline_options.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace millrace {

/// Plan of one batch: the positions of this rank's samples in the global sequence.
struct BatchPlan {
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;
  bool last_in_epoch = false;
  /// Number of this rank's samples, padding included.
  std::size_t size = 0;
  /// Number of samples over all ranks, without padding.
  std::size_t global_size = 0;
  /// Offset in the epoch of this rank's first sample. May lie beyond the epoch's end if all of this
  /// rank's samples are padding.
  std::uint64_t first_offset = 0;
  /// Global position after this batch, over all ranks.
  std::uint64_t position_after = 0;
  /// How many batch numbers are skipped after this batch. An epoch of a stream has fewer batches
  /// than numbers, so its last batch skips the rest. 0 for all other batches.
  std::uint64_t skipped_numbers = 0;
  /// First record of the shuffle window at `position_after`; 0 unless the dataset is a stream.
  std::uint64_t window_after = 0;
};

/// A position of the global sequence, with the first record of its shuffle window.
struct RunPosition {
  std::uint64_t position = 0;
  std::uint64_t window = 0;
};

/// Cuts the global sequence into batches: a pure function of the batch's number.
class Schedule {
 public:
  /// Plans epochs of `records` samples. Throws `Error` (`invalid_argument`) for options that
  /// contradict each other or the number of records.
  Schedule(std::uint64_t records, const PipelineOptions& options);

  /// Returns the number of samples of this rank's largest batch. A slot must hold as many.
  std::size_t largest_batch() const {
    return static_cast<std::size_t>((global_batch_ + world_ - 1) / world_);
  }
  std::uint64_t global_batch() const { return global_batch_; }

  std::uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  std::uint64_t epoch_size() const { return records_; }
  LastBatch last_batch() const { return last_batch_; }
  /// Returns this schedule with one epoch of `records` samples. Throws like the constructor.
  Schedule of_one_epoch(std::uint64_t records) const;

  /// Returns the number after the last batch; UINT64_MAX if the run is endless.
  std::uint64_t end() const;
  /// Returns the plan of a batch; nullopt after the last epoch.
  std::optional<BatchPlan> batch(std::uint64_t number) const;
  /// Returns the global position of a sample of a batch. A padding sample has the position of the
  /// sample that it repeats.
  std::uint64_t position(const BatchPlan& plan, std::size_t sample) const;
  bool is_padding(const BatchPlan& plan, std::size_t sample) const {
    return plan.first_offset + sample >= records_;
  }
  /// Returns the number of the batch that begins at a global position. Throws `Error`
  /// (`invalid_argument`) if no batch begins there.
  std::uint64_t number_at(std::uint64_t position) const;

 private:
  void set_records(std::uint64_t records);

  std::uint64_t records_ = 0;
  std::uint64_t global_batch_;
  std::uint64_t batches_per_epoch_ = 0;
  std::uint64_t epochs_;
  LastBatch last_batch_;
  std::uint32_t rank_;
  std::uint32_t world_;
};

}  // namespace millrace
