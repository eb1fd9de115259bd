// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "measure/device/bench_device.h"

namespace millrace::cli {

/// A trainer without a model. It takes a batch, enqueues a step on it, and waits for the previous
/// step, like a trainer that reads the loss one step late. Its arguments must outlive it. Not
/// thread-safe.
class SyntheticTrainer {
 public:
  /// Callback that gets a batch before the batch's step is enqueued.
  using Look = std::function<void(const Batch&)>;

  /// If `trace` is given, steps are recorded as spans of a lane in the pipeline's group.
  SyntheticTrainer(Pipeline* pipeline, TrainerStream& stream, Trace* trace = nullptr);
  /// Without a pipeline every step uses `ready`.
  SyntheticTrainer(Batch ready, TrainerStream& stream)
      : SyntheticTrainer(static_cast<Pipeline*>(nullptr), stream) {
    ready_ = std::move(ready);
  }

  void train_one(const Look& look = {});
  /// Waits for the last step.
  void finish();

  /// Discards the times so far, after a warm-up.
  void restart();
  /// Processor time of the calling thread for each batch, in microseconds: in `next` and in
  /// releasing the batch.
  const std::vector<double>& consumer_us() const { return consumer_us_; }

 private:
  void finish_oldest();

  Pipeline* pipeline_;
  TrainerStream& stream_;
  Batch ready_;
  Trace::Lane* lane_ = nullptr;
  /// Numbers of the batches whose steps are queued.
  std::deque<std::uint64_t> batches_;
  /// Cost of reading the thread's clock twice, which is subtracted from times.
  std::chrono::nanoseconds clock_cost_;
  std::vector<double> consumer_us_;
};

}  // namespace millrace::cli
