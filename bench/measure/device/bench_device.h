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

/// The work of a trainer's step.
struct StepWork {
  /// Fixed duration; 0 = no such step.
  std::chrono::nanoseconds duration{0};
  /// Rows of two square bfloat16 matrices to multiply; 0 = no such step.
  std::size_t gemm = 0;
  /// The trainer's own step, which gets a batch and the stream. If set, the others are ignored.
  std::function<void(const Batch&, Stream&)> own{};

  bool any() const { return duration.count() > 0 || gemm > 0 || own; }
};

/// Share of gaps in the time of steps and gaps, 0 to 1; nullopt without steps.
std::optional<double> idle_share(const StepStatistics& steps);

/// Begin and end of a step on the device.
struct StepSpan {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

/// The trainer's compute stream and its steps, which are timed on the device. Not thread-safe.
class TrainerStream {
 public:
  /// Maximum number of enqueued steps for which `finish_oldest` was not called.
  static constexpr std::size_t max_queued = 8;

  virtual ~TrainerStream() = default;
  TrainerStream(const TrainerStream&) = delete;
  TrainerStream& operator=(const TrainerStream&) = delete;

  virtual Stream& stream() = 0;
  /// Takes the pipeline's next batch for this stream.
  virtual Batch next(Pipeline& pipeline) { return pipeline.next(stream()); }
  const StepWork& work() const { return work_; }

  /// Enqueues a step on a batch, or a share of a step. Without work it enqueues only the events to
  /// wait for. Only a trainer's own step uses the batch, and it is never divided.
  void step(const Batch& batch, double share = 1);
  std::size_t queued() const { return enqueued_ - finished_; }
  /// Waits for the oldest unfinished step, which must exist. Nullopt if the device cannot measure
  /// times.
  std::optional<StepSpan> finish_oldest();

  /// Statistics of finished steps, without those enqueued before the last `restart_statistics`.
  /// Empty without work.
  virtual StepStatistics statistics() const = 0;
  virtual void restart_statistics() = 0;

  /// Callback for fields of a batch, in host memory.
  using Reader = std::function<void(std::span<const Tensor> fields)>;
  /// Calls `reader` with these fields of the batch as they are at this point of the stream. The
  /// call may come later, but in the order of the reads. This thread may wait for the device.
  virtual void read(const Batch& batch, std::span<const std::string> names, Reader reader) = 0;

 protected:
  explicit TrainerStream(const StepWork& work) : work_(work) {}
  std::size_t enqueued() const { return enqueued_; }

 private:
  /// Enqueues step `number`, from 0; at most `max_queued` are in flight.
  virtual void enqueue(std::size_t number, const Batch& batch, double share) = 0;
  virtual std::optional<StepSpan> finish(std::size_t number) = 0;

  const StepWork work_;
  std::size_t enqueued_ = 0;
  std::size_t finished_ = 0;
};

/// The device of a bench. All methods throw `Error` (`device`) if it fails.
class BenchDevice {
 public:
  virtual ~BenchDevice() = default;
  /// The device for pipelines.
  virtual std::shared_ptr<Device> device() const = 0;
  virtual std::unique_ptr<TrainerStream> make_trainer_stream(const StepWork& work) const = 0;
  /// Memory of the device in use by all programs, in bytes; nullopt on the host.
  virtual std::optional<std::size_t> memory_in_use() const { return std::nullopt; }
  /// Pinned host memory allocated by the driver (cudaMallocHost), to compare copies with; empty on
  /// the host.
  virtual Memory allocate_by_driver(std::size_t /*bytes*/) const { return {}; }
};

}  // namespace millrace::cli
