// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device_work.h>
#include <millrace/topology.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

// Threads: all methods may be called from any thread at once; an event is recorded by one thread at
// a time. Lifetimes: memory that work of a stream uses, and its release, must wait until the stream
// has passed that work. A device outlives its streams, events and memory. To let these go must not
// wait for what the device does otherwise: pipelines let them go where they promise to end in time.

namespace MILLRACE_API millrace {

/// Memory with its owner: freed by `release` when it goes.
class Memory {
 public:
  Memory() = default;
  Memory(std::byte* data, std::size_t bytes, std::function<void(std::byte*)> release)
      : data_(data, std::move(release)), bytes_(bytes) {}

  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte, std::function<void(std::byte*)>> data_;
  std::size_t bytes_ = 0;
};

/// A point in a stream's work. Recording again moves the point; an event that was never recorded
/// counts as complete.
class Event {
 public:
  virtual ~Event() = default;
  /// Whether the stream has passed the point. Never blocks.
  virtual bool complete() const = 0;
  /// Lets the calling thread sleep until `complete()` or until the time is over; returns
  /// `complete()`.
  virtual bool wait(std::chrono::nanoseconds timeout) const = 0;
  /// When the stream passed the point, for an event that was recorded and is complete; nullopt if
  /// the device does not tell.
  virtual std::optional<std::chrono::steady_clock::time_point> passed_at() const {
    return std::nullopt;
  }
};

/// An ordered queue of asynchronous work. Every call but `synchronize` returns at once. May be used
/// from any thread at once. Streams and events of different devices do not mix. All calls throw
/// `Error` (`device`) when the device fails.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Copies `bytes` from host slot memory to device memory when the stream reaches it.
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  /// Copies `bytes` of device memory to device memory of the same device.
  virtual void copy_on_device(void* destination, const void* source, std::size_t bytes) = 0;
  /// Runs the kernel that `work` names with its arguments, in device memory, when the stream
  /// reaches it. Every kind of work goes this way, so a further kernel is no further call. Throws
  /// `Error` (`device`) if this device has no such kernel.
  virtual void launch(const DeviceWork& work) = 0;
  /// Moves the event to this point of the stream.
  virtual void record(Event& event) = 0;
  /// Later work of this stream waits for the point at which `event` was last recorded before this
  /// call.
  virtual void wait(const Event& event) = 0;
  /// Blocks the calling thread until all work so far is done. millrace itself never calls it on the
  /// road of a batch.
  virtual void synchronize() = 0;
  /// Whether work given to it is being captured into a graph instead of being done: it then takes
  /// no batches and lets none go.
  virtual bool capturing() const { return false; }
};

/// Tells a profiler (Nsight Systems, for example) what threads do. May be called from any thread at
/// once; ranges of a thread nest.
class ProfilerRanges {
 public:
  virtual ~ProfilerRanges() = default;
  /// The calling thread begins `name`, for batch `batch`.
  virtual void begin(const char* name, std::uint64_t batch) noexcept = 0;
  /// It ends what it began last.
  virtual void end() noexcept = 0;
};

/// Whose memory batches lie in, for the libraries that they are handed to.
struct DeviceId {
  enum class Kind : std::uint8_t { host, cuda };
  Kind kind = Kind::host;
  /// The number of the GPU; 0 of the host.
  int index = 0;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// Where batches end up: gives memory, streams and events. All methods may be called from any
/// thread at once and throw `Error` (`device`) when they fail.
class Device {
 public:
  virtual ~Device() = default;
  /// "host", "cuda:0" ...
  virtual std::string name() const = 0;
  /// Whose memory `allocate_device` gives; the host's by default.
  virtual DeviceId id() const { return {}; }
  /// Whether batches are copied to memory of the device's own. If not, the host slot itself is
  /// handed out.
  virtual bool copies() const = 0;
  /// Host memory that the device copies from at full speed (pinned), page-aligned. Its pages lie on
  /// `node` where the system allows.
  virtual Memory allocate_host(std::size_t bytes, const NumaNode& node) = 0;
  /// Whether the runtime may keep memory of `allocate_host` when a pipeline gives it back, and hand
  /// it to the next pipeline over a device of the same `name`, which may be another object. Such
  /// memory must be able to outlive this device. False by default.
  virtual bool keeps_host_memory() const { return false; }
  /// Memory of the device, aligned to 256 bytes or more.
  virtual Memory allocate_device(std::size_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// An event that tells when it was passed, where the device can; others may not, for less work.
  virtual std::unique_ptr<Event> make_timed_event() { return make_event(); }
  /// Makes the calling thread, one of the pipeline's own, ready for calls of this device.
  virtual void bind_thread() {}
  /// The NUMA node (operating system's number) that the device is attached to; nullopt if there is
  /// none or it is not known.
  virtual std::optional<int> numa_node() const { return std::nullopt; }
  /// The profiler of this device's vendor; null where there is none. Lives as long as the device.
  virtual ProfilerRanges* profiler() { return nullptr; }
};

}  // namespace millrace
