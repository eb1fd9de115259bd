// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/batch.h>
#include <millrace/device.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace millrace::cli {

/// What the trainer's step is on the device.
struct StepWork {
  /// It takes so long; 0 = it does not.
  std::chrono::nanoseconds duration{0};
  /// A product of two square bfloat16 matrices with so many rows; 0 = none.
  std::size_t gemm = 0;
  /// A trainer's own, which is given a batch and the stream. The others do not count beside it.
  std::function<void(const Batch&, Stream&)> own{};

  bool any() const { return duration.count() > 0 || gemm > 0 || own; }
};

/// The share of the time of steps and gaps that the gaps take, 0 to 1; nullopt without steps.
std::optional<double> idle_share(const StepStatistics& steps);

/// When the device began a step and ended it.
struct StepSpan {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

/// The stream that a trainer computes on, and its steps, which are timed on the device. For one
/// thread.
class TrainerStream {
 public:
  /// So many steps at most may be enqueued that `finish_oldest` was not called for.
  static constexpr std::size_t most_queued = 8;

  virtual ~TrainerStream() = default;
  TrainerStream(const TrainerStream&) = delete;
  TrainerStream& operator=(const TrainerStream&) = delete;

  virtual Stream& stream() = 0;
  /// The pipeline's next batch, for this stream.
  virtual Batch next(Pipeline& pipeline) { return pipeline.next(stream()); }
  const StepWork& work() const { return work_; }

  /// Enqueues a step on a batch, or so much of one; without work only the marks around it, so that
  /// it can be waited for. A step of its own alone looks at the batch, and is always a whole one.
  void step(const Batch& batch, double share = 1);
  std::size_t queued() const { return enqueued_ - finished_; }
  /// Waits for the oldest step that it has not waited for yet, of which there must be one; none
  /// if the device tells no times.
  std::optional<StepSpan> finish_oldest();

  /// Of the steps that were finished, from the one enqueued next when `restart_statistics` was last
  /// called. None without work.
  virtual StepStatistics statistics() const = 0;
  virtual void restart_statistics() = 0;

  /// Takes fields of a batch, in host memory.
  using Reader = std::function<void(std::span<const Tensor> fields)>;
  /// Calls `reader` with the batch's fields of these names at this point of the stream, now or
  /// later, in order. This thread may wait for the device.
  virtual void read(const Batch& batch, std::span<const std::string> names, Reader reader) = 0;

 protected:
  explicit TrainerStream(const StepWork& work) : work_(work) {}
  std::size_t enqueued() const { return enqueued_; }

 private:
  /// The step number `number`, from 0, of `most_queued` in flight.
  virtual void enqueue(std::size_t number, const Batch& batch, double share) = 0;
  virtual std::optional<StepSpan> finish(std::size_t number) = 0;

  const StepWork work_;
  std::size_t enqueued_ = 0;
  std::size_t finished_ = 0;
};

/// The device that a bench runs on. All methods throw `Error` (`device`) when it fails.
class BenchDevice {
 public:
  virtual ~BenchDevice() = default;
  /// For pipelines.
  virtual std::shared_ptr<Device> device() const = 0;
  virtual std::unique_ptr<TrainerStream> make_trainer_stream(const StepWork& work) const = 0;
  /// Memory of the device that is taken, in bytes, by other programs, too; nullopt on the host.
  virtual std::optional<std::size_t> memory_in_use() const { return std::nullopt; }
  /// Pinned host memory as the driver itself allocates it (cudaMallocHost), to compare copies with;
  /// empty on the host.
  virtual Memory allocate_by_driver(std::size_t /*bytes*/) const { return {}; }
};

/// Whether `name` is "host" or "cuda:N".
bool is_bench_device(const std::string& name);
/// Opens the device of that name. The host copies no faster than `copy_bytes_per_second`, to
/// imitate a bus; 0 = as fast as the memory. Throws `Error`: `invalid_argument` for another name,
/// `device` "no CUDA device ..." if there is none.
std::shared_ptr<const BenchDevice> open_bench_device(const std::string& name,
                                                     double copy_bytes_per_second = 0);

/// In bench_cuda.cpp, and in bench_no_cuda.cpp, which refuses: a program is linked with the one or
/// the other.
std::shared_ptr<const BenchDevice> open_cuda_bench_device(int ordinal);

}  // namespace millrace::cli
