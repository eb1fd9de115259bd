// SPDX-License-Identifier: Apache-2.0
// millrace on an NVIDIA GPU: a trainer gives a `CudaDevice` to its pipelines and takes batches on a
// `CudaStream`.
//
// Threads: all methods may be called from any thread at once.
// Lifetimes: a pipeline shares the ownership of its device. Memory, streams and events may outlive
// the `CudaDevice` that made them. A caller's own stream outlives the `CudaStream` over it.
// Fork: in a child of fork() destructors return at once and give nothing back, and a `CudaDevice`
// cannot be made if the parent has made one.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/device.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

// What cudaStream_t points to; the CUDA headers are not needed here.
struct CUstream_st;

// Private, so outside of what is shown.
namespace millrace {
class EventClock;
struct Loan;
class Returns;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// A CUDA stream: one of its own, or the caller's.
class CudaStream final : public Stream {
 public:
  /// Makes a stream on device `device` that does not synchronise with the default stream; it goes
  /// with this object. An urgent one's kernels go before those of others that wait for room on the
  /// GPU.
  explicit CudaStream(int device, bool urgent = false);
  /// Uses the caller's stream (a cudaStream_t) on device `device`; it stays the caller's and must
  /// outlive this object. Null is the legacy default stream. Throws `Error` (`invalid_argument`)
  /// for cudaStreamPerThread: that is another stream on each thread, and the last share of a batch
  /// may go on any of them.
  CudaStream(int device, CUstream_st* stream);

  void copy(void* destination, const void* source, std::size_t bytes) override;
  void copy_on_device(void* destination, const void* source, std::size_t bytes) override;
  void launch(const DeviceWork& work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;
  bool capturing() const override;

  /// The cudaStream_t.
  CUstream_st* handle() const { return stream_; }

 private:
  struct End {
    void operator()(Loan* loan) const;
  };
  int device_;
  std::unique_ptr<Loan, End> owned_;
  CUstream_st* stream_;
};

/// A GPU, through the CUDA runtime. Host slots are page-locked memory on the NUMA node whose
/// workers fill them; a child of fork() does not have that memory. Copies are made by the copy
/// engine, conversions by a kernel. `Event::wait` asks the event from time to time and never
/// synchronises with the device. No call disturbs a capture of other streams into a graph,
/// whichever thread makes it, nor chooses a device for the calling thread.
///
/// Memory, streams and events are let go of at once, from any thread: each GPU has a thread that
/// gives them back, since CUDA may wait for all work of the GPU then. An allocation that finds no
/// memory waits up to 2 s for what is on its way back before it throws.
class CudaDevice final : public Device {
 public:
  /// Throws `Error` (`device`): "no CUDA device" where there is no driver or GPU, what the driver
  /// knows where it is too old, or that this one does not exist.
  explicit CudaDevice(int ordinal = 0);
  /// Waits up to 20 ms for what is on its way back; the rest follows when the GPU lets it.
  ~CudaDevice() override;

  std::string name() const override;
  DeviceId id() const override { return {DeviceId::Kind::cuda, ordinal_}; }
  bool copies() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override;
  bool keeps_host_memory() const override { return true; }
  Memory allocate_device(std::size_t bytes) override;
  /// Its kernels have the lowest priority, which a trainer's streams have by default: a conversion
  /// that goes first makes the GPU keep room free until all of it fits.
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  /// The first one waits once for the device, to set its clock by the host's. Throws `Error`
  /// (`device`) if the device has not answered within 10 s.
  std::unique_ptr<Event> make_timed_event() override;
  /// Makes it the thread's current device for good: to switch to and fro would make a context on
  /// device 0, too, with its memory.
  void bind_thread() override;
  /// The node that the GPU's PCI slot hangs on.
  std::optional<int> numa_node() const override;
  /// NVTX ranges in the domain "millrace", with the batch's number as payload: Nsight Systems shows
  /// them. Without such a tool they cost a load.
  ProfilerRanges* profiler() override { return profiler_.get(); }

 private:
  int ordinal_;
  std::unique_ptr<ProfilerRanges> profiler_;
  /// Where memory, streams and events go back to.
  std::shared_ptr<Returns> returns_;
  std::once_flag clock_made_;
  std::shared_ptr<EventClock> clock_;
};

}  // namespace millrace
