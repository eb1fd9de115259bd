// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "command/device/cublas.h"
#include "command/device/cuda_step.h"
#include "command/device/open_device.h"

namespace millrace::cli {
namespace {

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw Error(ErrorCode::device, std::string(call) + " failed: " + cudaGetErrorString(status) +
                                       " (" + cudaGetErrorName(status) + ")");
}

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

/// Makes an event that measures time, on the current device.
EventHandle make_event_handle() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
  return EventHandle(event);
}

/// Returns the time between two events that the stream has passed.
std::chrono::nanoseconds elapsed(const EventHandle& from, const EventHandle& to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "cudaEventElapsedTime");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<float, std::milli>(milliseconds));
}

/// Times each step with two events around its kernel. The first event is recorded before the
/// launch, so a few microseconds in which the device waits for the launch may count as busy. The
/// times are read after the steps have ended, so that only the trainer waits for the device.
class CudaTrainerStream final : public TrainerStream {
 public:
  /// `ordinal` must be the current device.
  CudaTrainerStream(std::shared_ptr<CudaDevice> device, int ordinal, const StepWork& work)
      : TrainerStream(work), device_(std::move(device)), ordinal_(ordinal), stream_(ordinal) {
    for (Marks& marks : marks_)
      marks = {make_event_handle(), make_event_handle(), device_->make_timed_event()};
    if (work.gemm > 0) product_ = std::make_unique<MatrixProduct>(*device_, stream_, work.gemm);
  }

  Stream& stream() override { return stream_; }
  StepStatistics statistics() const override { return statistics_; }
  void restart_statistics() override {
    statistics_ = {};
    first_counted_ = enqueued();
  }

  void read(const Batch& batch, std::span<const std::string> names, Reader reader) override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    read_.resize(names.size());
    std::vector<Tensor> fields;
    for (std::size_t place = 0; place < names.size(); ++place) {
      Tensor tensor = batch[names[place]];
      std::vector<std::byte>& host = read_[place];
      host.resize(tensor.bytes());
      check(cudaMemcpyAsync(host.data(), tensor.data, host.size(), cudaMemcpyDeviceToHost,
                            stream_.handle()),
            "cudaMemcpyAsync");
      tensor.data = host.data();
      fields.push_back(tensor);
    }
    stream_.synchronize();
    reader(fields);
  }

 private:
  struct Marks {
    EventHandle begin;
    EventHandle end;
    /// Event after `end`. It tells at which time of the host's clock the step ended.
    std::unique_ptr<Event> passed;
  };

  void enqueue(std::size_t number, const Batch&, double share) override {
    const Marks& marks = marks_[number % marks_.size()];
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    check(cudaEventRecord(marks.begin.get(), stream_.handle()), "cudaEventRecord");
    if (product_) {
      product_->enqueue(share);
    } else if (work().any()) {
      const double nanoseconds = share * static_cast<double>(work().duration.count());
      check(launch_step(static_cast<std::uint64_t>(std::llround(nanoseconds)), stream_.handle()),
            "launch_step");
    }
    check(cudaEventRecord(marks.end.get(), stream_.handle()), "cudaEventRecord");
    stream_.record(*marks.passed);
  }

  std::optional<StepSpan> finish(std::size_t number) override {
    const Marks& marks = marks_[number % marks_.size()];
    if (!marks.passed->wait(std::chrono::hours(1)))
      throw Error(ErrorCode::timeout, "a step has not ended within an hour");
    const std::chrono::nanoseconds busy = elapsed(marks.begin, marks.end);
    if (work().any() && number >= first_counted_) {
      ++statistics_.steps;
      statistics_.busy += busy;
      if (number > first_counted_)
        statistics_.idle += elapsed(marks_[(number - 1) % marks_.size()].end, marks.begin);
    }
    const auto end = marks.passed->passed_at();
    if (!end) return std::nullopt;
    return StepSpan{*end - busy, *end};
  }

  std::shared_ptr<CudaDevice> device_;
  const int ordinal_;
  /// One element more than steps can be in flight, because the end of the previous step is still
  /// read with the oldest one.
  std::array<Marks, max_queued + 1> marks_;
  StepStatistics statistics_;
  std::size_t first_counted_ = 0;
  /// Fields of the batch that was read last.
  std::vector<std::vector<std::byte>> read_;
  CudaStream stream_;
  std::unique_ptr<MatrixProduct> product_;
};

class CudaBenchDevice final : public BenchDevice {
 public:
  explicit CudaBenchDevice(int ordinal)
      : ordinal_(ordinal), device_(std::make_shared<CudaDevice>(ordinal)) {}

  std::shared_ptr<Device> device() const override { return device_; }
  std::unique_ptr<TrainerStream> make_trainer_stream(const StepWork& work) const override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    return std::make_unique<CudaTrainerStream>(device_, ordinal_, work);
  }
  std::optional<std::size_t> memory_in_use() const override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    std::size_t free = 0;
    std::size_t all = 0;
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    return all - free;
  }
  Memory allocate_by_driver(std::size_t bytes) const override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    void* data = nullptr;
    check(cudaMallocHost(&data, bytes), "cudaMallocHost");
    return Memory(static_cast<std::byte*>(data), bytes,
                  [](std::byte* memory) { cudaFreeHost(memory); });
  }

 private:
  const int ordinal_;
  std::shared_ptr<CudaDevice> device_;
};

}  // namespace

std::shared_ptr<const BenchDevice> open_cuda_bench_device(int ordinal) {
  return std::make_shared<CudaBenchDevice>(ordinal);
}

}  // namespace millrace::cli
