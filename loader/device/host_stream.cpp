// SPDX-License-Identifier: Apache-2.0
#include "device/host_stream.h"

#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "base/owner_process.h"

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
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  reached_ = std::max(reached_, point);
  time_ = time;
  notify.add(reached_condition_);
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

/// Work of the stream. It receives the time of the stream's clock at its start, and advances it to
/// its end.
using Work = std::function<void(Clock::time_point& clock)>;

}  // namespace

/// The queue, its thread and the stream's clock.
class HostStream::Queue {
 public:
  Queue() : thread_([this] { serve(); }) {}

  ~Queue() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  /// Whether the calling process has the queue's thread.
  bool is_owner_process() const { return process_.is_owner(); }

  void push(Work work) {
    NotifyAfterUnlock notify;
    MutexLock lock(mutex_);
    works_.push_back({std::move(work), Clock::now()});
    notify.add(changed_);
  }

  /// Pushes work that only affects later work. The thread sleeps on until other work is pushed.
  void push_quietly(Work work) {
    MutexLock lock(mutex_);
    works_.push_back({std::move(work), Clock::now()});
  }

  /// Records a point of an event. An idle stream has reached it at once, without waking its thread.
  void record(const std::shared_ptr<EventPoints>& points) {
    const std::uint64_t point = points->record();
    NotifyAfterUnlock notify;
    MutexLock lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (idle_at_ && works_.empty()) {
      idle_at_ = std::max(*idle_at_, now);
      return points->reach(point, *idle_at_);
    }
    works_.push_back(
        {[points, point](Clock::time_point& clock) { points->reach(point, clock); }, now});
    notify.add(changed_);
  }

  /// Adds a step of the stream to the statistics.
  void note_step(Clock::time_point start, std::chrono::nanoseconds duration) {
    MutexLock lock(mutex_);
    if (last_step_end_) steps_.idle += start - *last_step_end_;
    last_step_end_ = start + duration;
    steps_.busy += duration;
    ++steps_.steps;
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
  struct Queued {
    Work run;
    Clock::time_point at;
  };

  void serve() {
    Clock::time_point clock{};  // time of the stream's clock
    while (std::optional<Queued> work = take(clock)) {
      clock = std::max(clock, work->at);
      work->run(clock);
    }
  }

  std::optional<Queued> take(Clock::time_point& clock) {
    MutexLock lock(mutex_);
    idle_at_ = clock;
    while (works_.empty()) {
      if (closed_) return std::nullopt;
      changed_.wait(mutex_);
    }
    clock = *std::exchange(idle_at_, std::nullopt);
    Queued work = std::move(works_.front());
    works_.pop_front();
    return work;
  }

  const OwnerProcess process_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Queued> works_ MILLRACE_GUARDED_BY(mutex_);
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  /// Time of the stream's clock; set while its thread is idle.
  std::optional<Clock::time_point> idle_at_ MILLRACE_GUARDED_BY(mutex_);
  StepStatistics steps_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> last_step_end_ MILLRACE_GUARDED_BY(mutex_);
  std::thread thread_;
};

HostStream::HostStream(double copy_bytes_per_second)
    : copy_bytes_per_second_(copy_bytes_per_second), queue_(std::make_unique<Queue>()) {}
HostStream::~HostStream() {
  if (!queue_->is_owner_process()) leak(std::move(queue_));
}

void HostStream::copy(void* destination, const void* source, std::size_t bytes) {
  const double seconds =
      copy_bytes_per_second_ > 0 ? static_cast<double>(bytes) / copy_bytes_per_second_ : 0;
  const auto least =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  queue_->push([=](Clock::time_point& clock) {
    const Clock::time_point start = clock;
    std::memcpy(destination, source, bytes);
    clock = std::max({clock, Clock::now(), start + least});
    if (least.count() > 0) std::this_thread::sleep_until(clock);
  });
}

void HostStream::copy_on_device(void* destination, const void* source, std::size_t bytes) {
  launch([destination, source, bytes] { std::memcpy(destination, source, bytes); });
}

void HostStream::copy_to_host(void* destination, const void* source, std::size_t bytes) {
  copy_on_device(destination, source, bytes);
}

void HostStream::launch(const DeviceWork& work) { launch(work.on_host()); }

void HostStream::record(Event& event) { queue_->record(host_event(event).points()); }

void HostStream::wait(const Event& event) {
  const auto& points = host_event(const_cast<Event&>(event)).points();
  const std::uint64_t point = points->last();
  if (points->reached(point)) return;  // the event precedes all work enqueued later
  queue_->push_quietly([points, point](Clock::time_point& clock) {
    points->wait(point, Clock::time_point::max());
    clock = std::max(clock, points->time());
  });
}

void HostStream::synchronize() {
  note_blocking_call("HostStream::synchronize");
  HostEvent event;
  record(event);
  event.points()->wait(event.points()->last(), Clock::time_point::max());
}

void HostStream::step(std::chrono::nanoseconds duration) {
  queue_->push([queue = queue_.get(), duration](Clock::time_point& clock) {
    queue->note_step(clock, duration);
    clock += duration;
    std::this_thread::sleep_until(clock);
  });
}

void HostStream::launch(std::function<void()> function) {
  queue_->push([function = std::move(function)](Clock::time_point& clock) {
    function();
    clock = std::max(clock, Clock::now());
  });
}

StepStatistics HostStream::steps() const { return queue_->steps(); }

void HostStream::reset_steps() { queue_->reset_steps(); }

}  // namespace millrace
