// SPDX-License-Identifier: Apache-2.0
#include <millrace/pipeline.h>

#include <utility>

#include "pipeline/engine.h"
#include "runtime/runtime_services.h"

namespace millrace {

Pipeline::Pipeline(std::shared_ptr<const Dataset> dataset,
                   std::shared_ptr<const Transform> transform, std::shared_ptr<Device> device,
                   PipelineOptions options) {
  if (dataset == nullptr)
    throw Error(ErrorCode::invalid_argument, "the dataset is null; a pipeline needs one");
  if (transform == nullptr)
    throw Error(ErrorCode::invalid_argument, "the transform is null; a pipeline needs one");
  if (device == nullptr)
    throw Error(ErrorCode::invalid_argument, "the device is null; a pipeline needs one");
  if (options.runtime != nullptr) RuntimeServices::of(*options.runtime).require_owner();
  if (auto fitted = transform->fitted_to(*dataset)) transform = std::move(fitted);
  std::shared_ptr<Runtime> runtime =
      options.runtime ? std::exchange(options.runtime, nullptr)
                      : make_runtime({.local_rank = options.ranks.this_process.local_rank,
                                      .local_world = options.ranks.this_process.local_world});
  engine_ = std::make_shared<Engine>(std::move(dataset), std::move(transform), std::move(device),
                                     options, std::move(runtime));
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
  stop_timeout_ = other.stop_timeout_;
  on_stuck_ = std::move(other.on_stuck_);
  return *this;
}

void Pipeline::end() noexcept {
  if (engine_ == nullptr) return;
  if (!engine_->is_owner_process()) return leak(std::move(engine_));
  try {
    const std::optional<Stuck> stuck = engine_->stop(deadline_after(stop_timeout_));
    if (stuck && on_stuck_) on_stuck_(stuck->what);
  } catch (...) {
    // Only the program's `on_stuck` can throw here. The exception is ignored, because a destructor
    // cannot throw.
  }
  engine_.reset();
}

/// Returns the engine with shared ownership, so that a running call may outlive the pipeline.
std::shared_ptr<Engine> Pipeline::engine() const {
  if (engine_ == nullptr)
    throw Error(ErrorCode::invalid_argument, "a pipeline that was moved from was used");
  if (!engine_->is_owner_process())
    throw Error(ErrorCode::invalid_argument,
                "the pipeline was made before fork(), whose child does not have its threads; make "
                "a pipeline in the child");
  return engine_;
}

Batch Pipeline::next(const NextRequest& request) { return engine()->next(request); }

Batch Pipeline::next(Stream& stream) { return next({.stream = &stream}); }

Batch Pipeline::next(Stream& stream, std::chrono::nanoseconds timeout) {
  return next({.stream = &stream, .timeout = timeout});
}

Batch Pipeline::next() { return next(NextRequest{}); }

Batch Pipeline::next_in_micro_batches(Stream& stream) {
  return next({.stream = &stream, .in_micro_batches = true});
}

DeviceId Pipeline::device() const { return engine()->device(); }

std::uint64_t Pipeline::batches_per_epoch() const {
  const std::shared_ptr<Engine> running = engine();
  return running->has_known_length() ? running->schedule().batches_per_epoch() : 0;
}

std::optional<std::uint64_t> Pipeline::total_batches() const {
  const std::shared_ptr<Engine> running = engine();
  const std::uint64_t end = running->schedule().end();
  return end == UINT64_MAX || !running->has_known_length() ? std::nullopt : std::optional(end);
}

std::uint64_t Pipeline::set_weights(std::span<const double> weights) {
  return engine()->set_weights(weights);
}

State Pipeline::state() const { return engine()->state(); }

MemoryReport Pipeline::memory() const { return engine()->memory(); }

Report Pipeline::report() const { return engine()->report(); }

void Pipeline::restart_report() { engine()->restart_report(); }

Report Pipeline::take_report() { return engine()->take_report(); }

void Pipeline::stop() {
  if (const std::optional<Stuck> stuck = engine()->stop(deadline_after(stop_timeout_)))
    throw Error(ErrorCode::timeout, "the pipeline does not stop: " + stuck->what, stuck->stage);
}

}  // namespace millrace
