// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/host_device.h>
#include <millrace/measure.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"

namespace millrace::testing {

/// A trainer over simulated records. Samples take no time unless a test sets one, and its step
/// sleeps.
struct UserWorkload {
  std::shared_ptr<MemoryDataset> dataset = std::make_shared<MemoryDataset>(640);
  std::shared_ptr<StampTransform> transform = std::make_shared<StampTransform>();
  /// Number of steps, and of steps with an empty batch or one of the wrong size.
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> wrong{0};

  measure::Workload workload(std::shared_ptr<Device> device,
                             std::chrono::microseconds step_time = std::chrono::milliseconds(1)) {
    return {.dataset = dataset,
            .transform = transform,
            .device = std::move(device),
            .stream = stream,
            .step =
                [this, step_time](const Batch& batch, Stream& used) {
                  ++steps;
                  if (this->stream != nullptr && &used != this->stream.get()) ++wrong;
                  if (!batch || batch.size() != batch_size) ++wrong;
                  if (auto* host = dynamic_cast<HostStream*>(&used); host != nullptr && on_device)
                    host->step(step_time);
                  else
                    std::this_thread::sleep_for(step_time);
                },
            .pipeline = {.batch_size = batch_size, .seed = 3}};
  }

  static constexpr std::size_t batch_size = 8;
  /// Whether steps are work on the stream.
  bool on_device = false;
  /// The trainer's own stream; null if it has none.
  std::shared_ptr<HostStream> stream{};
};

}  // namespace millrace::testing
