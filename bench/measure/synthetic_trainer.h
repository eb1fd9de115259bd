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

/// A trainer without a model: takes a batch, enqueues a step on it, and waits for the step before
/// that one, as a trainer does that reads the loss one step late. What it is given must outlive it.
/// For one thread.
class SyntheticTrainer {
 public:
  /// Sees a batch before its step is enqueued.
  using Look = std::function<void(const Batch&)>;

  /// Steps become spans of a lane of `trace`, if there is one, in the pipeline's group.
  SyntheticTrainer(Pipeline* pipeline, TrainerStream& stream, Trace* trace = nullptr);
  /// Without a pipeline every step has its batch already.
  SyntheticTrainer(Batch ready, TrainerStream& stream)
      : SyntheticTrainer(static_cast<Pipeline*>(nullptr), stream) {
    ready_ = std::move(ready);
  }

  void train_one(const Look& look = {});
  /// Waits for the last step.
  void finish();

  /// Forgets the times so far, after a warm-up.
  void restart();
  /// Processor time of the calling thread for each batch, in microseconds: in `next` and in letting
  /// the batch go.
  const std::vector<double>& consumer_us() const { return consumer_us_; }

 private:
  void finish_oldest();

  Pipeline* pipeline_;
  TrainerStream& stream_;
  Batch ready_;
  Trace::Lane* lane_ = nullptr;
  /// The numbers of the batches whose steps are queued.
  std::deque<std::uint64_t> batches_;
  /// What looking at the thread's clock twice adds to a time.
  std::chrono::nanoseconds clock_cost_;
  std::vector<double> consumer_us_;
};

}  // namespace millrace::cli
