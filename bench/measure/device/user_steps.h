// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "measure/device/bench_device.h"

namespace millrace::cli {

/// A trainer's device, and the stream of its steps.
struct UserTrainer {
  std::shared_ptr<Device> device;
  /// Null = each trainer stream makes its own.
  std::shared_ptr<Stream> stream{};
  /// If set, called some times a second, before batches and while the thread waits for one.
  std::function<void()> poll{};
};

/// Wraps a device for a trainer's own steps (`StepWork::own`), or for none.
/// - On a device that copies batches, a step is the work that the callable enqueues on the stream,
///   between two timed events. Statistics are missing if the device cannot measure times.
/// - On any other device, a step is the work of the calling thread in the callable. Batches are
///   taken for the host, and the step ends when the callable returns. The stream is not waited for.
std::shared_ptr<const BenchDevice> with_user_steps(UserTrainer trainer);

}  // namespace millrace::cli
