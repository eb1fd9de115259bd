// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "measure/device/bench_device.h"

namespace millrace::cli {

/// Wraps a device for a trainer's own steps (`StepWork::own`), or for none.
/// - On a device that copies batches, a step is the work that the callable enqueues on the stream,
///   between two timed events. Statistics are missing if the device cannot measure times.
/// - On any other device, a step is the work of the calling thread in the callable. Batches are
///   taken for the host, and the step ends when the callable returns. The stream is not waited for.
/// All trainer streams use `stream`; if it is null, each makes its own.
std::shared_ptr<const BenchDevice> with_user_steps(std::shared_ptr<Device> device,
                                                   std::shared_ptr<Stream> stream = nullptr);

}  // namespace millrace::cli
