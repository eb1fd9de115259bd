// SPDX-License-Identifier: Apache-2.0
#include "measure/device/user_steps.h"

#include <millrace/error.h>

#include <array>
#include <utility>

namespace millrace::cli {
namespace {

using UserClock = std::chrono::steady_clock;

/// Sums the times of steps that are finished in order.
class StepSums {
 public:
  void add(std::size_t number, const StepSpan& span) {
    if (number < first_counted_) return;
    ++statistics_.steps;
    statistics_.busy += span.end - span.begin;
    if (number > first_counted_ && span.begin > last_end_)
      statistics_.idle += span.begin - last_end_;
    last_end_ = span.end;
  }
  /// Counts only steps from number `first` on.
  void restart(std::size_t first) {
    statistics_ = {};
    first_counted_ = first;
  }
  const StepStatistics& statistics() const { return statistics_; }

 private:
  StepStatistics statistics_;
  std::size_t first_counted_ = 0;
  UserClock::time_point last_end_;
};

/// Takes batches. While it waits for one, polls at intervals.
class PolledBatches {
 public:
  explicit PolledBatches(std::function<void()> poll) : poll_(std::move(poll)) {}

  /// `stream` may be null, for the host.
  Batch next(Pipeline& pipeline, Stream* stream) {
    if (!poll_) return pipeline.next({.stream = stream});
    if (UserClock::now() - polled_ >= interval) poll();
    for (;;) {
      try {
        return pipeline.next({.stream = stream, .timeout = interval});
      } catch (const SlotsHeld&) {
        // If the step keeps all batches, no further batch can be made. A call without timeout
        // throws the error that states this.
        return pipeline.next({.stream = stream});
      } catch (const Error& error) {
        if (error.code() != ErrorCode::timeout) throw;
      }
      poll();
    }
  }

 private:
  static constexpr std::chrono::milliseconds interval{250};

  void poll() {
    poll_();
    polled_ = UserClock::now();
  }

  const std::function<void()> poll_;
  UserClock::time_point polled_ = UserClock::now();
};

class UserStream : public TrainerStream {
 public:
  Stream& stream() override { return *stream_; }
  StepStatistics statistics() const override { return sums_.statistics(); }
  void restart_statistics() override { sums_.restart(enqueued()); }
  void read(const Batch&, std::span<const std::string>, Reader) override {
    throw Error(ErrorCode::invalid_argument, "a trainer's own step allows no digest");
  }

 protected:
  UserStream(const UserTrainer& trainer, const StepWork& work)
      : TrainerStream(work),
        device_(trainer.device),
        batches_(trainer.poll),
        stream_(trainer.stream ? trainer.stream : device_->make_stream()) {}
  Device& device() { return *device_; }
  PolledBatches& batches() { return batches_; }
  void run(const Batch& batch) {
    if (work().own) work().own(batch, *stream_);
  }
  void count(std::size_t number, const StepSpan& span) {
    if (work().any()) sums_.add(number, span);
  }

 private:
  std::shared_ptr<Device> device_;
  StepSums sums_;
  PolledBatches batches_;
  std::shared_ptr<Stream> stream_;
};

/// Runs steps on the calling thread.
class ThreadStream final : public UserStream {
 public:
  ThreadStream(const UserTrainer& trainer, const StepWork& work) : UserStream(trainer, work) {}

  Batch next(Pipeline& pipeline) override { return batches().next(pipeline, nullptr); }

 private:
  void enqueue(std::size_t number, const Batch& batch, double) override {
    StepSpan& span = spans_[number % spans_.size()];
    span.begin = UserClock::now();
    run(batch);
    span.end = UserClock::now();
    count(number, span);
  }
  std::optional<StepSpan> finish(std::size_t number) override {
    return spans_[number % spans_.size()];
  }

  std::array<StepSpan, max_queued> spans_;
};

/// Runs steps on the device's stream.
class TimedStream final : public UserStream {
 public:
  TimedStream(const UserTrainer& trainer, const StepWork& work) : UserStream(trainer, work) {
    for (Marks& marks : marks_) marks = {device().make_timed_event(), device().make_timed_event()};
  }
  /// Waits for the stream, since it may not have reached the events yet.
  ~TimedStream() override {
    try {
      stream().synchronize();
    } catch (...) {  // the device has failed; other calls report this
    }
  }

  Batch next(Pipeline& pipeline) override { return batches().next(pipeline, &stream()); }

 private:
  struct Marks {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };

  void enqueue(std::size_t number, const Batch& batch, double) override {
    const Marks& marks = marks_[number % marks_.size()];
    stream().record(*marks.begin);
    run(batch);
    stream().record(*marks.end);
  }
  std::optional<StepSpan> finish(std::size_t number) override {
    const Marks& marks = marks_[number % marks_.size()];
    if (!marks.end->wait(std::chrono::hours(1)))
      throw Error(ErrorCode::timeout, "a step has not ended within an hour");
    const auto begin = marks.begin->passed_at();
    const auto end = marks.end->passed_at();
    if (!begin || !end) return std::nullopt;
    count(number, {*begin, *end});
    return StepSpan{*begin, *end};
  }

  std::array<Marks, max_queued> marks_;
};

class UserStepsDevice final : public BenchDevice {
 public:
  explicit UserStepsDevice(UserTrainer trainer) : trainer_(std::move(trainer)) {}

  std::shared_ptr<Device> device() const override { return trainer_.device; }
  std::unique_ptr<TrainerStream> make_trainer_stream(const StepWork& work) const override {
    if (!work.own && work.any())
      throw Error(ErrorCode::invalid_argument, "this device runs only a trainer's own steps");
    if (trainer_.device->copies()) return std::make_unique<TimedStream>(trainer_, work);
    return std::make_unique<ThreadStream>(trainer_, work);
  }

 private:
  const UserTrainer trainer_;
};

}  // namespace

std::shared_ptr<const BenchDevice> with_user_steps(UserTrainer trainer) {
  return std::make_shared<UserStepsDevice>(std::move(trainer));
}

}  // namespace millrace::cli
