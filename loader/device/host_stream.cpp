// SPDX-License-Identifier: Apache-2.0
#include "device/host_stream.h"

#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <variant>

namespace millrace {

std::uint64_t EventPoints::record() {
  MutexLock lock(mutex_);
  return ++recorded_;
}

std::uint64_t EventPoints::last() const {
  MutexLock lock(mutex_);
  return recorded_;
}

void EventPoints::reach(std::uint64_t point, Clock::time_point time) {
  MutexLock lock(mutex_);
  reached_ = std::max(reached_, point);
  time_ = time;
  reached_condition_.notify_all();
}

bool EventPoints::reached(std::uint64_t point) const {
  MutexLock lock(mutex_);
  return reached_ >= point;
}

bool EventPoints::wait(std::uint64_t point, Clock::time_point deadline) const {
  MutexLock lock(mutex_);
  while (reached_ < point)
    if (!reached_condition_.wait_until(mutex_, deadline)) return reached_ >= point;
  return true;
}

EventPoints::Clock::time_point EventPoints::time() const {
  MutexLock lock(mutex_);
  return time_;
}

namespace {

using Clock = EventPoints::Clock;

HostEvent& host_event(Event& event) {
  auto* host = dynamic_cast<HostEvent*>(&event);
  if (host == nullptr)
    throw Error(ErrorCode::device, "host: an event of another device was given to a host stream");
  return *host;
}

struct CopyWork {
  void* destination;
  const void* source;
  std::size_t bytes;
};
struct RecordWork {
  std::shared_ptr<EventPoints> points;
  std::uint64_t point;
};
struct WaitWork {
  std::shared_ptr<EventPoints> points;
  std::uint64_t point;
};
struct StepWork {
  std::chrono::nanoseconds duration;
};
struct LaunchWork {
  std::function<void()> function;
};

struct Work {
  std::variant<CopyWork, RecordWork, WaitWork, StepWork, LaunchWork> what;
  Clock::time_point enqueued = Clock::now();
};

}  // namespace

/// The queue, its thread and the stream's clock.
class HostStream::Queue {
 public:
  explicit Queue(double copy_bytes_per_second)
      : copy_bytes_per_second_(copy_bytes_per_second), thread_([this] { serve(); }) {}

  ~Queue() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void push(Work work) {
    MutexLock lock(mutex_);
    works_.push_back(std::move(work));
    changed_.notify_all();
  }

  StepStatistics steps() const {
    MutexLock lock(mutex_);
    return steps_;
  }

  void reset_steps() {
    MutexLock lock(mutex_);
    steps_ = {};
    last_step_end_.reset();
  }

 private:
  void serve() {
    while (std::optional<Work> work = take()) {
      clock_ = std::max(clock_, work->enqueued);
      std::visit([this](auto& what) { run(what); }, work->what);
    }
  }

  std::optional<Work> take() {
    MutexLock lock(mutex_);
    while (works_.empty()) {
      if (closed_) return std::nullopt;
      changed_.wait(mutex_);
    }
    Work work = std::move(works_.front());
    works_.pop_front();
    return work;
  }

  void run(CopyWork& work) {
    const Clock::time_point start = clock_;
    std::memcpy(work.destination, work.source, work.bytes);
    clock_ = std::max(clock_, Clock::now());
    if (copy_bytes_per_second_ <= 0) return;
    const std::chrono::duration<double> least(static_cast<double>(work.bytes) /
                                              copy_bytes_per_second_);
    clock_ = std::max(clock_, start + std::chrono::duration_cast<Clock::duration>(least));
    std::this_thread::sleep_until(clock_);
  }

  void run(RecordWork& work) { work.points->reach(work.point, clock_); }

  void run(WaitWork& work) {
    work.points->wait(work.point, Clock::time_point::max());
    clock_ = std::max(clock_, work.points->time());
  }

  void run(StepWork& work) {
    const Clock::time_point start = clock_;
    clock_ += work.duration;
    {
      MutexLock lock(mutex_);
      if (last_step_end_) steps_.idle += start - *last_step_end_;
      last_step_end_ = clock_;
      steps_.busy += work.duration;
      ++steps_.steps;
    }
    std::this_thread::sleep_until(clock_);
  }

  void run(LaunchWork& work) {
    work.function();
    clock_ = std::max(clock_, Clock::now());
  }

  const double copy_bytes_per_second_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Work> works_ MILLRACE_GUARDED_BY(mutex_);
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  StepStatistics steps_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> last_step_end_ MILLRACE_GUARDED_BY(mutex_);
  /// Where the stream is in time; the stream's thread alone uses it.
  Clock::time_point clock_{};
  std::thread thread_;
};

HostStream::HostStream(double copy_bytes_per_second)
    : queue_(std::make_unique<Queue>(copy_bytes_per_second)) {}
HostStream::~HostStream() = default;

void HostStream::copy(void* destination, const void* source, std::size_t bytes) {
  queue_->push({CopyWork{destination, source, bytes}});
}

void HostStream::copy_on_device(void* destination, const void* source, std::size_t bytes) {
  launch([destination, source, bytes] { std::memcpy(destination, source, bytes); });
}

void HostStream::launch(const DeviceWork& work) { launch(work.on_host()); }

void HostStream::record(Event& event) {
  const auto& points = host_event(event).points();
  queue_->push({RecordWork{points, points->record()}});
}

void HostStream::wait(const Event& event) {
  const auto& points = host_event(const_cast<Event&>(event)).points();
  queue_->push({WaitWork{points, points->last()}});
}

void HostStream::synchronize() {
  note_blocking_call("HostStream::synchronize");
  HostEvent event;
  record(event);
  event.points()->wait(event.points()->last(), Clock::time_point::max());
}

void HostStream::step(std::chrono::nanoseconds duration) { queue_->push({StepWork{duration}}); }

void HostStream::launch(std::function<void()> function) {
  queue_->push({LaunchWork{std::move(function)}});
}

StepStatistics HostStream::steps() const { return queue_->steps(); }

void HostStream::reset_steps() { queue_->reset_steps(); }

}  // namespace millrace
