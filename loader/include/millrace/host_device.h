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

// Threads: all methods may be called from any thread at once; each stream does its work on a thread
// of its own. Lifetimes: what a stream's work uses must live until the stream has done it, which
// its destructor waits for. Events may go before the work that records or awaits them.

namespace MILLRACE_API millrace {

/// What the steps on a `HostStream` added up to since the stream began or `reset_steps()`.
struct StepStatistics {
  std::uint64_t steps = 0;
  /// Time in steps.
  std::chrono::nanoseconds busy{0};
  /// Sum of the gaps between one step's end and the next one's start; waiting for an event counts.
  std::chrono::nanoseconds idle{0};
};

/// A stream without a GPU: a queue served by a thread of its own. A copy happens when the stream
/// reaches it, a step takes its time without burning a core, an event is complete when the stream
/// has passed it.
///
/// The stream keeps a clock of its own: work starts at the latest of the end of the work before it,
/// its enqueueing and the events it waits for. A step ends its duration after its start, however
/// late the operating system wakes the thread, so gaps between steps are those a device would have
/// had.
class HostStream final : public Stream {
 public:
  /// Copies take at least their bytes / `copy_bytes_per_second`, to imitate a bus; 0 = as fast as
  /// the memory.
  explicit HostStream(double copy_bytes_per_second = 0);
  /// Returns when all work is done.
  ~HostStream() override;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void copy(void* destination, const void* source, std::size_t bytes) override;
  void copy_on_device(void* destination, const void* source, std::size_t bytes) override;
  /// Any kind of work is done by its reference, `run_on_host`.
  void launch(const DeviceWork& work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;

  /// Enqueues work that keeps the stream busy for `duration`: a stand-in for a training step.
  void step(std::chrono::nanoseconds duration);
  /// Enqueues a function to be run by the stream's thread: a "kernel" on the host. It must not
  /// throw or use this stream.
  void launch(std::function<void()> function);

  StepStatistics steps() const;
  void reset_steps();

 private:
  class Queue;
  const double copy_bytes_per_second_;
  std::unique_ptr<Queue> queue_;
};

struct HostDeviceOptions {
  /// Copy batches to "device" memory asynchronously, as a GPU does; else hand out the host slot
  /// itself, ready to read.
  bool copies = false;
  /// How fast its streams copy at most, in bytes per second, to imitate a bus; 0 = as fast as the
  /// memory.
  double copy_bytes_per_second = 0;
};

/// The embedded default device: the host itself. The reference for what other devices must do.
class HostDevice final : public Device {
 public:
  explicit HostDevice(HostDeviceOptions options = {}) : options_(options) {}

  std::string name() const override { return "host"; }
  bool copies() const override { return options_.copies; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override;
  bool keeps_host_memory() const override { return true; }
  Memory allocate_device(std::size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;

  /// How often memory was allocated so far.
  std::uint64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }

 private:
  HostDeviceOptions options_;
  std::atomic<std::uint64_t> allocations_{0};  // a count, orders nothing
};

}  // namespace millrace
