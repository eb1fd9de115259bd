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

// The interface of a device: memory, streams and events.
//
// Threads: all methods may be called by several threads at the same time. However, two threads
// must not record the same event at the same time. Lifetimes: memory that a stream's work uses must
// not be freed before the stream has finished that work. A device outlives its streams, events and
// memory. The destructors of streams, events and memory must not wait for other work of the device,
// because pipelines call them in functions with a time limit.

namespace MILLRACE_API millrace {

/// Memory and the function that frees it: the destructor calls `release`.
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

/// A point in a stream's work. Recording again moves the point. An event that was never recorded
/// counts as complete.
class Event {
 public:
  virtual ~Event() = default;
  /// Whether the stream has passed the point. Never blocks.
  virtual bool complete() const = 0;
  /// Blocks until `complete()` or until the timeout. The calling thread sleeps meanwhile. Returns
  /// `complete()`.
  virtual bool wait(std::chrono::nanoseconds timeout) const = 0;
  /// Time at which the stream passed the point, for an event that was recorded and is complete.
  /// Returns nullopt if the device does not measure it. Throws `Error` (`device`) if it fails.
  virtual std::optional<std::chrono::steady_clock::time_point> passed_at() const {
    return std::nullopt;
  }
};

/// An ordered queue of asynchronous work. Every call except `synchronize` returns immediately. A
/// stream may be used by several threads at the same time. Streams and events of different
/// devices must not be mixed. All calls throw `Error` (`device`) when the device fails.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Enqueues a copy of `bytes` bytes from host slot memory to device memory.
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  /// Enqueues a copy of `bytes` bytes within the memory of the device.
  virtual void copy_on_device(void* destination, const void* source, std::size_t bytes) = 0;
  /// Enqueues a copy of `bytes` bytes from device memory to memory of `Device::allocate_host`.
  /// Needed only for device stages that mark samples (`DeviceStage::Samples::marks`). The default
  /// throws `Error` (`device`).
  virtual void copy_to_host(void* destination, const void* source, std::size_t bytes);
  /// Enqueues the kernel that `work` names, with the arguments that `work` refers to. The arguments
  /// lie in host memory; the sample data that they point to lies in device memory. All kinds of
  /// work use this call, so a new kernel needs no new method. Throws `Error` (`device`) if this
  /// device has no such kernel.
  virtual void launch(const DeviceWork& work) = 0;
  /// Moves the event to this point of the stream.
  virtual void record(Event& event) = 0;
  /// Makes later work of this stream wait for the point at which `event` was last recorded before
  /// this call.
  virtual void wait(const Event& event) = 0;
  /// Blocks the calling thread until all work enqueued so far is done. millrace never calls it
  /// while it makes or hands out batches.
  virtual void synchronize() = 0;
  /// Whether work given to the stream is being captured into a graph instead of being done. Such a
  /// stream can neither take nor release batches.
  virtual bool capturing() const { return false; }
};

/// Marks named time ranges of threads for a profiler, such as Nsight Systems. May be called by
/// several threads at the same time. Ranges of one thread nest.
class ProfilerRanges {
 public:
  virtual ~ProfilerRanges() = default;
  /// Begins the range `name` on the calling thread, for batch `batch`.
  virtual void begin(const char* name, std::uint64_t batch) noexcept = 0;
  /// Ends the range that the calling thread began last.
  virtual void end() noexcept = 0;
};

/// Identity of the device whose memory holds batches, for libraries that receive them.
struct DeviceId {
  enum class Kind : std::uint8_t { host, cuda };
  Kind kind = Kind::host;
  /// Number of the GPU; 0 for the host.
  int index = 0;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// The destination of batches: provides memory, streams and events. All methods may be called by
/// several threads at the same time. They throw `Error` (`device`) when they fail.
class Device {
 public:
  virtual ~Device() = default;
  /// "host", "cuda:0" ...
  virtual std::string name() const = 0;
  /// The device whose memory `allocate_device` returns; the host by default.
  virtual DeviceId id() const { return {}; }
  /// Whether batches are copied to memory of `allocate_device`. If false, batches are handed out in
  /// their host slots. With `PipelineOptions::conversion` they are always copied.
  virtual bool copies() const = 0;
  /// Allocates page-aligned host memory that the device copies from at full speed (pinned). Its
  /// pages lie on `node` if the system allows.
  virtual Memory allocate_host(std::size_t bytes, const NumaNode& node) = 0;
  /// Whether later pipelines may use memory of `allocate_host` again. If true, the runtime keeps
  /// memory that a pipeline returns, and gives it to a later pipeline over a device of the same
  /// `name`. That device may be another object, so the memory must be able to outlive this device.
  /// False by default.
  virtual bool host_memory_is_reusable() const { return false; }
  /// Allocates memory of the device, aligned to 256 bytes or more.
  virtual Memory allocate_device(std::size_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Makes an event that measures `Event::passed_at`, if the device can. Events of `make_event`
  /// need not measure it, which saves work.
  virtual std::unique_ptr<Event> make_timed_event() { return make_event(); }
  /// Prepares the calling thread, one of the pipeline's own, for calls of this device.
  virtual void prepare_thread() {}
  /// NUMA node (the operating system's number) that the device is attached to; nullopt if the node
  /// is unknown or the device has none.
  virtual std::optional<int> numa_node() const { return std::nullopt; }
  /// The profiler of this device's vendor; may be null. It lives as long as the device.
  virtual ProfilerRanges* profiler() { return nullptr; }
};

}  // namespace millrace
