// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace millrace::cli {

/// A trainer without a model: takes a batch, enqueues a step on it, and waits for the step before that one, as a trainer does that reads
/// the loss one step late. What it is given must outlive it.
class SyntheticTrainer {
 public:
  /// Sees a batch before its step is enqueued.
  using Look = std::function<void(const Batch&)>;

  /// Without a pipeline (null) every step has its batch already. Steps become spans of a lane of `trace`, where there is one.
  SyntheticTrainer(Pipeline* pipeline, HostStream& stream, std::chrono::nanoseconds step, Trace* trace = nullptr);

  void train_one(const Look& look = {});
  /// Waits for the last step.
  void finish();

 private:
  struct Step {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };
  void wait_for(std::size_t number);

  Pipeline* pipeline_;
  HostStream& stream_;
  std::chrono::nanoseconds step_;
  Trace::Lane* lane_ = nullptr;
  std::array<Step, 2> steps_;
  std::size_t enqueued_ = 0;
};

}  // namespace millrace::cli
