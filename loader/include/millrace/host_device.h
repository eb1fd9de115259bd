// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

// Threads: all methods may be called by several threads at the same time. Each stream works on a
// thread of its own. Lifetimes: memory and functions that a stream's work uses must live until the
// stream has done the work; the stream's destructor waits for it. Events may be destroyed before
// the work that records or awaits them.

namespace MILLRACE_API millrace {

/// Sums over the steps (`HostStream::step`) since the stream was made or since `reset_steps()`.
struct StepStatistics {
  std::uint64_t steps = 0;
  /// Total time in steps.
  std::chrono::nanoseconds busy{0};
  /// Sum of the gaps between one step's end and the next one's start; waiting for an event counts.
  std::chrono::nanoseconds idle{0};
};

/// A stream without a GPU: a queue with a thread of its own. A copy is made when the stream reaches
/// it. During a step (`step`) the stream's thread sleeps. An event is complete when the stream has
/// passed it.
///
/// The stream keeps a clock of its own. Work starts at the latest of three times: the end of the
/// work before it, its enqueueing, and the events it waits for. A step ends exactly its duration
/// after its start, however late the operating system wakes the thread. So the gaps between steps
/// are as long as on a device.
class HostStream final : public Stream {
 public:
  /// Copies take at least their bytes / `copy_bytes_per_second`, which imitates a bus. 0 = as fast
  /// as the memory.
  explicit HostStream(double copy_bytes_per_second = 0);
  /// Waits until all work is done.
  ~HostStream() override;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void copy(void* destination, const void* source, std::size_t bytes) override;
  void copy_on_device(void* destination, const void* source, std::size_t bytes) override;
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override;
  /// Enqueues a call of the work's reference implementation, `run_on_host`.
  void launch(const DeviceWork& work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;

  /// Enqueues work that keeps the stream busy for `duration`. It simulates a training step.
  void step(std::chrono::nanoseconds duration);
  /// Enqueues a function for the stream's thread: a "kernel" on the host. It must not throw or use
  /// this stream.
  void launch(std::function<void()> function);

  StepStatistics steps() const;
  void reset_steps();

 private:
  class Queue;
  const double copy_bytes_per_second_;
  std::unique_ptr<Queue> queue_;
};

struct HostDeviceOptions {
  /// Copy batches to "device" memory asynchronously, as a GPU does. If false, the host slot itself
  /// is handed out, ready to read.
  bool copies = false;
  /// Maximal speed of its streams' copies in bytes per second, which imitates a bus. 0 = as fast as
  /// the memory.
  double copy_bytes_per_second = 0;
};

/// The default device: the host itself. It is the reference for the behaviour of other devices.
class HostDevice final : public Device {
 public:
  explicit HostDevice(HostDeviceOptions options = {}) : options_(options) {}

  std::string name() const override { return "host"; }
  bool copies() const override { return options_.copies; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override;
  bool host_memory_is_reusable() const override { return true; }
  Memory allocate_device(std::size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;

  /// Number of allocations so far.
  std::uint64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }

 private:
  HostDeviceOptions options_;
  std::atomic<std::uint64_t> allocations_{0};  // a count, orders nothing
};

}  // namespace millrace
