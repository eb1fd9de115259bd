// SPDX-License-Identifier: Apache-2.0
#include "synthetic_trainer.h"

namespace millrace::cli {

SyntheticTrainer::SyntheticTrainer(Pipeline* pipeline, HostStream& stream, std::chrono::nanoseconds step, Trace* trace)
    : pipeline_(pipeline), stream_(stream), step_(step) {
  HostDevice device;
  for (Step& one : steps_) one = {device.make_event(), device.make_event()};
  if (trace != nullptr) lane_ = &trace->add_lane(trace->add_group("trainer"), "device steps");
}

void SyntheticTrainer::train_one(const Look& look) {
  Batch batch = pipeline_ == nullptr ? Batch() : pipeline_->next(stream_);
  if (look) look(batch);
  const Step& step = steps_[enqueued_ % steps_.size()];
  stream_.record(*step.begin);
  if (step_.count() > 0) stream_.step(step_);
  stream_.record(*step.end);
  batch.reset();
  ++enqueued_;
  if (enqueued_ > 1) wait_for(enqueued_ - 2);
}

void SyntheticTrainer::finish() {
  if (enqueued_ > 0) wait_for(enqueued_ - 1);
}

void SyntheticTrainer::wait_for(std::size_t number) {
  const Step& step = steps_[number % steps_.size()];
  step.end->wait(std::chrono::hours(1));
  if (lane_ != nullptr && step_.count() > 0) lane_->add("step", *step.begin->passed_at(), *step.end->passed_at());
}

}  // namespace millrace::cli
