// SPDX-License-Identifier: Apache-2.0
#include <millrace/pipeline.h>

#include <utility>

#include "pipeline/engine.h"

namespace millrace {

Pipeline::Pipeline(std::shared_ptr<const Dataset> dataset,
                   std::shared_ptr<const Transform> transform, std::shared_ptr<Device> device,
                   PipelineOptions options) {
  if (dataset == nullptr)
    throw Error(ErrorCode::invalid_argument, "a pipeline needs a dataset; it was given none");
  if (transform == nullptr)
    throw Error(ErrorCode::invalid_argument, "a pipeline needs a transform; it was given none");
  if (device == nullptr)
    throw Error(ErrorCode::invalid_argument, "a pipeline needs a device; it was given none");
  runtime_ = options.runtime ? std::exchange(options.runtime, nullptr)
                             : make_runtime({.local_rank = options.ranks.mine.local_rank,
                                             .local_world = options.ranks.mine.local_world});
  engine_ = std::make_shared<Engine>(std::move(dataset), std::move(transform), std::move(device),
                                     options, *runtime_);
  stop_timeout_ = options.debug.stop_timeout;
  on_stuck_ = std::move(options.debug.on_stuck);
  engine_->start();
}

Pipeline::~Pipeline() { end(); }

Pipeline::Pipeline(Pipeline&&) noexcept = default;

Pipeline& Pipeline::operator=(Pipeline&& other) noexcept {
  if (this == &other) return *this;
  end();
  engine_ = std::move(other.engine_);
  runtime_ = std::move(other.runtime_);
  stop_timeout_ = other.stop_timeout_;
  on_stuck_ = std::move(other.on_stuck_);
  return *this;
}

void Pipeline::end() noexcept {
  if (engine_ == nullptr) return;
  try {
    const std::optional<Engine::Stuck> stuck = engine_->stop(stop_timeout_);
    if (stuck && on_stuck_) on_stuck_(stuck->what);
  } catch (...) {
    // Only the caller's own on_stuck throws here, and a destructor cannot pass it on.
  }
  engine_.reset();
}

Engine& Pipeline::engine() const {
  if (engine_ == nullptr)
    throw Error(ErrorCode::invalid_argument, "a pipeline that was moved from was used");
  return *engine_;
}

Batch Pipeline::next(Stream& stream) { return engine().next({.stream = &stream}); }

Batch Pipeline::next(Stream& stream, std::chrono::nanoseconds timeout) {
  return engine().next({.stream = &stream, .timeout = timeout});
}

Batch Pipeline::next() { return engine().next({}); }

Batch Pipeline::next_in_parts(Stream& stream) {
  return engine().next({.stream = &stream, .in_parts = true});
}

State Pipeline::state() const { return engine().state(); }

Report Pipeline::report() const { return engine().report(); }

void Pipeline::restart_report() { engine().restart_report(); }

void Pipeline::stop() {
  if (const std::optional<Engine::Stuck> stuck = engine().stop(stop_timeout_))
    throw Error(ErrorCode::timeout, "the pipeline does not stop: " + stuck->what, stuck->stage);
}

}  // namespace millrace
