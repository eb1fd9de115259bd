// SPDX-License-Identifier: Apache-2.0
// millrace on an NVIDIA GPU: a trainer gives a `CudaDevice` to its pipelines and takes batches on a
// `CudaStream`.
//
// Threads: all methods may be called by several threads at the same time. Lifetimes: a pipeline
// shares ownership of its device. Memory, streams and events may outlive the `CudaDevice` that made
// them. A caller's own stream must outlive the `CudaStream` over it. Fork: in a child of fork()
// destructors return at once and free nothing. The child cannot make a `CudaDevice` if the parent
// has made one.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

// Declared as in the CUDA headers, which are not included here. cudaStream_t is a pointer to it.
struct CUstream_st;

// Private types, outside the exported namespace.
namespace millrace {
class EventClock;
struct DeferredFree;
class DeallocationQueue;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// A CUDA stream: a new one, or the caller's.
class CudaStream final : public Stream {
 public:
  /// Makes a stream on device `device` that does not synchronise with the default stream. The
  /// stream is destroyed with this object. Kernels of an urgent stream have a higher priority: they
  /// start before other kernels that wait for room on the GPU.
  explicit CudaStream(int device, bool urgent = false);
  /// Uses the caller's stream (a cudaStream_t) on device `device`. The caller still owns the
  /// stream, which must outlive this object. Null is the legacy default stream. Throws `Error`
  /// (`invalid_argument`) for cudaStreamPerThread: each thread has its own, but any thread may
  /// release the last share of a batch.
  CudaStream(int device, CUstream_st* stream);

  void copy(void* destination, const void* source, std::size_t bytes) override;
  void copy_on_device(void* destination, const void* source, std::size_t bytes) override;
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override;
  void launch(const DeviceWork& work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;
  bool capturing() const override;

  /// Returns the cudaStream_t.
  CUstream_st* handle() const { return stream_; }

 private:
  struct Deleter {
    void operator()(DeferredFree* deferred) const;
  };
  int device_;
  std::unique_ptr<DeferredFree, Deleter> owned_;
  CUstream_st* stream_;
};

/// A GPU, through the CUDA runtime. Host slots are page-locked memory on the NUMA node whose
/// workers fill them; a child of fork() does not have this memory. Copies run on the copy engine,
/// conversions in a kernel. `Event::wait` polls the event and never synchronises with the device.
/// No call disturbs the graph capture of another stream, on any thread. Only `prepare_thread`
/// changes the calling thread's current device.
///
/// Any thread can release memory, streams and events without waiting. The CUDA calls that free them
/// may wait for all work of the GPU, so each GPU has a thread that makes these calls later. If an
/// allocation finds too little memory, it waits up to 2 s for such deferred frees before it throws.
class CudaDevice final : public Device {
 public:
  /// Throws `Error` (`device`) with the reason: no driver or GPU ("no CUDA device"), a driver
  /// version that is too old, or no such device.
  explicit CudaDevice(int ordinal = 0);
  /// Waits up to 20 ms for deferred frees. Frees that take longer are done after it returns.
  ~CudaDevice() override;

  std::string name() const override;
  DeviceId id() const override { return {DeviceId::Kind::cuda, ordinal_}; }
  bool copies() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override;
  bool host_memory_is_reusable() const override { return true; }
  Memory allocate_device(std::size_t bytes) override;
  /// Makes a stream whose kernels have the lowest priority, which is also the default priority of a
  /// trainer's streams. With a higher priority, waiting conversions would get free multiprocessors
  /// before the trainer's kernels.
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  /// Makes an event with a timestamp. The first call waits once for the device, to synchronise its
  /// clock with the host's. Throws `Error` (`device`) if the device has not answered within 10 s.
  std::unique_ptr<Event> make_timed_event() override;
  /// Makes this GPU the calling thread's current device permanently. Restoring the previous device
  /// after each call would also create a context on device 0, which takes memory.
  void prepare_thread() override;
  /// Returns the NUMA node of the GPU's PCI slot.
  std::optional<int> numa_node() const override;
  /// Returns NVTX ranges in the domain "millrace", with the batch's number as payload. Nsight
  /// Systems shows them. Without such a tool, NVTX's functions return at once.
  ProfilerRanges* profiler() override { return profiler_.get(); }

 private:
  int ordinal_;
  std::unique_ptr<ProfilerRanges> profiler_;
  /// Deferred frees of memory, streams and events.
  std::shared_ptr<DeallocationQueue> deallocations_;
  std::once_flag clock_made_;
  std::shared_ptr<EventClock> clock_;
};

}  // namespace millrace
