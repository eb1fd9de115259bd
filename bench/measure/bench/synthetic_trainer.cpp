// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/synthetic_trainer.h"

#include <algorithm>

#include "measure/machine/process.h"

namespace millrace::cli {
namespace {

std::chrono::nanoseconds cost_of_thread_clock() {
  constexpr int tries = 50;
  std::chrono::nanoseconds least = std::chrono::nanoseconds::max();
  for (int round = 0; round < tries; ++round) {
    const auto before = thread_time();
    least = std::min(least, thread_time() - before);
  }
  return least;
}

}  // namespace

SyntheticTrainer::SyntheticTrainer(Pipeline* pipeline, TrainerStream& stream, Trace* trace)
    : pipeline_(pipeline), stream_(stream), clock_cost_(cost_of_thread_clock()) {
  if (trace != nullptr)
    lane_ = &trace->add_lane(trace->group(PipelineOptions().name), "device steps", "step");
}

void SyntheticTrainer::train_one(const Look& look) {
  Batch batch = ready_;
  std::chrono::nanoseconds consumer{0};
  if (pipeline_ != nullptr) {
    const auto before = thread_time();
    batch = stream_.next(*pipeline_);
    consumer = thread_time() - before - clock_cost_;
  }
  if (look) look(batch);
  stream_.step(batch);
  batches_.push_back(pipeline_ != nullptr ? batch.number() : TraceSpan::none);
  if (pipeline_ != nullptr) {
    const auto before = thread_time();
    batch.reset();
    consumer += thread_time() - before - clock_cost_;
    consumer_us_.push_back(
        std::max(0.0, std::chrono::duration<double, std::micro>(consumer).count()));
  }
  while (stream_.queued() > 1) finish_oldest();
}

void SyntheticTrainer::finish() {
  while (stream_.queued() > 0) finish_oldest();
}

void SyntheticTrainer::restart() {
  consumer_us_.clear();
  stream_.restart_statistics();
}

void SyntheticTrainer::finish_oldest() {
  const auto span = stream_.finish_oldest();
  const std::uint64_t number = batches_.front();
  batches_.pop_front();
  if (lane_ != nullptr && span && stream_.work().any())
    lane_->add("step", span->begin, span->end, number);
}

}  // namespace millrace::cli
