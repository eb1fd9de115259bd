// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

// What cudaStream_t points to; the CUDA headers are not needed here.
struct CUstream_st;

namespace millrace {

class EventClock;

/// A CUDA stream: one of its own, or the caller's.
class CudaStream final : public Stream {
 public:
  /// Makes a stream on device `device` that does not synchronise with the default stream; it goes
  /// with this object. An urgent one's kernels go before those of others that wait for room on the
  /// GPU.
  explicit CudaStream(int device, bool urgent = false);
  /// Uses the caller's stream (a cudaStream_t) on device `device`; it stays the caller's and must
  /// outlive this object.
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
  struct Destroy {
    void operator()(CUstream_st* stream) const;
  };
  int device_;
  std::unique_ptr<CUstream_st, Destroy> owned_;
  CUstream_st* stream_;
};

/// A GPU, through the CUDA runtime. Host slots are page-locked memory on the NUMA node whose
/// workers fill them; copies are made by the copy engine, conversions by a kernel. `Event::wait`
/// asks the event from time to time and never synchronises with the device. No call disturbs a
/// capture of other streams into a graph, whichever thread makes it.
class CudaDevice final : public Device {
 public:
  /// Throws `Error` (`device`): "no CUDA device" where there is no driver or GPU, or that this one
  /// does not exist.
  explicit CudaDevice(int ordinal = 0);
  ~CudaDevice() override;

  std::string name() const override;
  bool copies() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override;
  Memory allocate_device(std::size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  /// The first one waits once for the device, to set its clock by the host's.
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
  std::once_flag clock_made_;
  std::shared_ptr<EventClock> clock_;
};

}  // namespace millrace
