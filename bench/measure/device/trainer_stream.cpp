// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>

#include "measure/device/bench_device.h"

namespace millrace::cli {

std::optional<double> idle_share(const StepStatistics& steps) {
  if (steps.steps == 0) return std::nullopt;
  return static_cast<double>(steps.idle.count()) /
         static_cast<double>((steps.idle + steps.busy).count());
}

void TrainerStream::step(const Batch& batch, double share) {
  if (queued() == max_queued) throw Error(ErrorCode::internal, "too many steps are enqueued");
  enqueue(enqueued_, batch, share);
  ++enqueued_;
}

std::optional<StepSpan> TrainerStream::finish_oldest() {
  if (queued() == 0) throw Error(ErrorCode::internal, "no step is enqueued");
  return finish(finished_++);
}

}  // namespace millrace::cli
