// SPDX-License-Identifier: Apache-2.0
//
// The engine's side of the trainer: handing batches out, and taking their slots back.
#include <algorithm>

#include "device/profiler_range.h"
#include "pipeline/batch_path.h"
#include "pipeline/engine.h"

namespace millrace {
namespace {

/// How long the need for workers is watched before their number is chosen anew: at least so many
/// batches and so long.
constexpr std::uint64_t adapt_batches = 8;
constexpr std::chrono::milliseconds adapt_time{100};

Error captured(const std::string& what) {
  return {ErrorCode::invalid_argument,
          what +
              " while the stream is being captured into a graph: take the batch before the capture "
              "begins, and let it go after "
              "it ends",
          "hand out"};
}

}  // namespace

Batch Engine::next(const Request& request) {
  refuse_capture(request.stream, "a batch was asked for");
  const BatchPath path(watched());
  const ProfilerRange range(profiler_, "next", profiler_ != nullptr ? next_number() : 0);
  Lease* lease = wait_for_batch(request);
  if (lease == nullptr) return {};
  Batch batch(shared_from_this(), lease);  // gives the slot back if a wait below fails
  try {
    if (!request.in_parts) wait_for_copies(*lease, request);
    path.check("next");
  } catch (...) {
    fail_and_throw("hand out");
  }
  return batch;
}

std::uint64_t Engine::next_number() const {
  MutexLock lock(mutex_);
  return next_handed_out_;
}

void Engine::refuse_capture(Stream* stream, const char* call) {
  bool capturing = false;
  try {
    capturing = stream != nullptr && stream->capturing();
  } catch (...) {
    fail_and_throw("hand out");
  }
  if (capturing) throw captured(call);
}

Lease* Engine::wait_for_batch(const Request& request) {
  const Clock::time_point asked = Clock::now();
  const Clock::time_point deadline =
      request.timeout ? deadline_after(*request.timeout) : Clock::time_point::max();
  MutexLock lock(mutex_);
  for (;;) {
    throw_if_closed();
    if (!ready_.empty() &&
        (request.in_parts || ready_.front()->parts_ready == options_.slots.micro_batches))
      break;
    if (ready_.empty() && !schedule_.batch(next_handed_out_)) return nullptr;
    const bool exhausted = ready_.empty() && live_ == leases_.size();
    const auto held = [this]() MILLRACE_REQUIRES(mutex_) {
      return std::to_string(live_) + " live batches hold every " + (copies_ ? "device" : "host") +
             " slot";
    };
    if (exhausted && !request.timeout)
      throw Error(ErrorCode::slots_exhausted,
                  held() + ", so no further batch can come; let one go first, give more " +
                      (copies_ ? "device_slots" : "prefetch") +
                      ", or call next with a timeout if another thread will");
    if (!trainer_wakes_.wait_until(mutex_, deadline) && Clock::now() >= deadline) {
      const std::string after =
          " after " + std::to_string(request.timeout->count() / 1'000'000) + " ms";
      throw Error(ErrorCode::timeout,
                  exhausted ? held() + " still" + after : "the next batch is not made" + after);
    }
  }
  Lease* lease = ready_.front();
  ready_.pop_front();
  hand_out(*lease, request, asked);
  return lease;
}

void Engine::hand_out(Lease& lease, const Request& request, Clock::time_point asked) {
  const Clock::time_point now = Clock::now();
  ++live_;
  if (++next_handed_out_ >= steady_at_) steady_.store(true, std::memory_order_relaxed);
  position_ = lease.plan.position_after;
  lease.shares.store(1, std::memory_order_relaxed);  // handed to its first owner by this thread
  lease.stream = request.stream;
  lease.parts_taken.store(request.in_parts ? 0 : options_.slots.micro_batches,
                          std::memory_order_relaxed);
  meter_.handed_out({asked, now, lease.planned_at, lease.slot_wait_begin, lease.slot_wait_end,
                     lease.plan.number, lease.plan.size});
  adapt_workers(now);
  note_road(now);
}

void Engine::adapt_workers(Clock::time_point now) {
  if (!runtime_.adaptive() || ++adapt_window_.batches < adapt_batches ||
      now - adapt_window_.begin < adapt_time)
    return;
  const std::chrono::nanoseconds busy = maker_.busy();
  const std::chrono::nanoseconds stalled = meter_.stalled();
  const auto seconds = [](std::chrono::nanoseconds duration) {
    return std::chrono::duration<double>(duration).count();
  };
  runtime_.need(this,
                auto_workers_.update({seconds(now - adapt_window_.begin),
                                      seconds(stalled - adapt_window_.stalled),
                                      seconds(busy - adapt_window_.busy)}),
                nodes_.pools());
  adapt_window_ = {now, 0, busy, stalled};
}

void Engine::wait_for_copies(Lease& lease, const Request& request) {
  if (request.stream != nullptr) use_on(lease, *request.stream);
  if (!copies_) return;
  const Event& copied =
      *lease.ready
           .back();  // all parts come by one stream, so the last one's event is behind them all
  if (request.stream != nullptr) {
    request.stream->wait(copied);
    return;
  }
  while (!copied.wait(std::chrono::milliseconds(100))) {
    MutexLock lock(mutex_);
    throw_if_closed();
  }
}

std::size_t Engine::part_count(const Lease& lease) const {
  std::size_t parts = 0;
  while (parts < options_.slots.micro_batches && part_begin(parts) < lease.plan.size) ++parts;
  return parts;
}

void Engine::take_part(Lease& lease, std::size_t part) {
  const Clock::time_point asked = Clock::now();
  {
    MutexLock lock(mutex_);
    if (part < lease.parts_taken.load(std::memory_order_relaxed)) return;
  }
  refuse_capture(lease.stream, "a part was asked for");
  const BatchPath path(watched());
  {
    MutexLock lock(mutex_);
    if (part < lease.parts_taken.load(std::memory_order_relaxed))
      return;  // by another thread since
    while (lease.parts_ready <= part) {
      throw_if_closed();
      trainer_wakes_.wait(mutex_);
    }
    if (part > 0) meter_.waited_for_part(asked, Clock::now(), lease.plan.number);
    // Parts without samples come with the last one that has some.
    lease.parts_taken.store(part + 1 == part_count(lease) ? options_.slots.micro_batches : part + 1,
                            std::memory_order_relaxed);
  }
  if (lease.stream == nullptr) return;
  try {
    use_on(lease, *lease.stream);
    if (copies_) lease.stream->wait(*lease.ready[part]);
    path.check("next");
  } catch (...) {
    fail_and_throw("hand out");
  }
}

void Engine::record_stream(Lease& lease, Stream& stream) {
  refuse_capture(&stream, "a batch was to be used on a further stream");
  try {
    const BatchPath path(watched());
    use_on(lease, stream);
    path.check("record_stream");
  } catch (...) {
    fail_and_throw("hand out");
  }
}

void Engine::use_on(Lease& lease, Stream& stream) {
  const auto known = [&]() MILLRACE_REQUIRES(mutex_) {
    return std::any_of(lease.uses.begin(),
                       lease.uses.begin() + static_cast<std::ptrdiff_t>(lease.used),
                       [&stream](const Lease::Use& use) { return use.stream == &stream; });
  };
  {
    MutexLock lock(mutex_);
    if (known()) return;
    if (lease.used < lease.uses.size()) {
      lease.uses[lease.used++].stream = &stream;
      return;
    }
  }
  std::unique_ptr<Event> done =
      device_->make_event();  // only when a slot is used on more streams than ever before
  MutexLock lock(mutex_);
  if (known()) return;
  lease.uses.push_back({&stream, std::move(done)});
  ++lease.used;
}

void Engine::fail_and_throw(const char* stage) {
  fail(stage);
  MutexLock lock(mutex_);
  throw_if_closed();
  throw Error(ErrorCode::internal, "the run was closed without an error", stage);
}

void Engine::release(Lease& lease) noexcept {
  try {
    const BatchPath path(watched());
    bool capturing = false;
    for (std::size_t use = 0; use < lease.used; ++use) {
      Stream& stream = *lease.uses[use].stream;
      if (stream.capturing())
        capturing = true;  // recorded there, the event would be part of the graph
      else
        stream.record(*lease.uses[use].done);
    }
    if (capturing) throw captured("a batch was let go");
    path.check("release");
  } catch (...) {
    fail("release");
  }
  MutexLock lock(mutex_);
  --live_;
  if (lease.parts_ready == options_.slots.micro_batches) {
    recycle(lease);
  } else {
    lease.released_early = true;
  }
  trainer_wakes_.notify_all();
}

void Engine::recycle(Lease& lease) {
  if (copies_) {
    free_leases_.push_back(&lease);
    feeder_wakes_.notify_all();
  } else if (lease.used > 0) {
    releasing_.push_back(&lease);
    reaper_wakes_.notify_all();
  } else {
    free_hosts_.push_back(lease.host);
    note_road(Clock::now());
    reaper_wakes_.notify_all();
  }
}

}  // namespace millrace
