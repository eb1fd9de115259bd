// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "measure/device/bench_device.h"

namespace millrace::cli {

/// Any device, with steps of a trainer's own (`StepWork::own`) or none.
/// - On a device that copies batches, a step is what the callable puts on the stream, between two
///   timed events. Where the device tells no times there are no statistics.
/// - On one that does not, it is what the calling thread does in the callable: batches are taken
///   for the host, and the step is over when the callable returns. Nobody waits for the stream.
/// All streams are `stream`, or of their own without one.
std::shared_ptr<const BenchDevice> with_own_steps(std::shared_ptr<Device> device,
                                                  std::shared_ptr<Stream> stream = nullptr);

}  // namespace millrace::cli
