// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/error.h>
#include <millrace/trace.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <fstream>
#include <limits>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "report/trace_json.h"

namespace millrace {
namespace {

/// State that all lanes of a trace share.
struct Common {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  enum class Room { none, taken, in_place_of_another };

  explicit Common(TraceOptions options)
      : max_events(options.max_events),
        keep_newest(options.keep_newest),
        wanted(std::move(options.lanes)) {}

  /// Reserves room for one event that begins at `begin_ns`, unless the trace is finished at that
  /// time.
  Room take(std::int64_t begin_ns) {
    if (begin_ns >= finish_ns.load(std::memory_order_relaxed)) return Room::none;
    std::size_t count = events.load(std::memory_order_relaxed);
    while (count < max_events)
      if (events.compare_exchange_weak(count, count + 1, std::memory_order_relaxed))
        return Room::taken;
    dropped.fetch_add(1, std::memory_order_relaxed);
    return keep_newest ? Room::in_place_of_another : Room::none;
  }
  std::int64_t since_start(Trace::Clock::time_point time) const {
    return time.time_since_epoch().count() - start_ns.load(std::memory_order_relaxed);
  }

  const std::size_t max_events;
  const bool keep_newest;
  const std::vector<std::string> wanted;
  // Relaxed order suffices for these counts and times, since no other data depends on them.
  std::atomic<std::size_t> events{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::int64_t> start_ns{Trace::Clock::now().time_since_epoch().count()};
  /// Nanoseconds since the start.
  std::atomic<std::int64_t> finish_ns{never};
};

}  // namespace

struct Trace::State {
  explicit State(TraceOptions options) : common(std::move(options)) {}

  /// Drops the oldest event of the lanes that have several, or else of all lanes. Returns false if
  /// no lane has an event.
  bool drop_oldest();

  Common common;
  Mutex mutex{};
  std::vector<std::string> groups MILLRACE_GUARDED_BY(mutex){};
  std::vector<std::unique_ptr<Lane>> lanes MILLRACE_GUARDED_BY(mutex){};
  std::set<std::string> names MILLRACE_GUARDED_BY(mutex){};
};

struct Trace::Lane::State {
  /// Begin of the oldest event; `Common::never` without events.
  std::int64_t oldest_ns() const MILLRACE_REQUIRES(mutex) {
    return std::min(spans.empty() ? Common::never : spans.front().begin_ns,
                    values.empty() ? Common::never : values.front().at_ns);
  }
  /// Drops the lane's oldest event. Returns false without events.
  bool drop_oldest() MILLRACE_REQUIRES(mutex) {
    if (spans.empty() && values.empty()) return false;
    if (!spans.empty() && spans.front().begin_ns == oldest_ns())
      spans.pop_front();
    else
      values.pop_front();
    return true;
  }
  void push(const TraceSpan& span) MILLRACE_REQUIRES(mutex) { spans.push_back(span); }
  void push(const TraceValue& value) MILLRACE_REQUIRES(mutex) { values.push_back(value); }

  template <typename Event>
  void keep(Common::Room room, const Event& event) {
    if (room == Common::Room::none) return;
    {
      MutexLock lock(mutex);
      if (room == Common::Room::taken || drop_oldest()) return push(event);
    }
    if (!trace.drop_oldest()) return;
    MutexLock lock(mutex);
    push(event);
  }

  const std::size_t group;
  const std::string name;
  const std::string category;
  Trace::State& trace;
  Common& common = trace.common;
  const bool wanted =
      common.wanted.empty() || std::ranges::find(common.wanted, name) != common.wanted.end();
  std::atomic<int> thread{0};
  Mutex mutex{};
  // Deques are used so that adding an element never moves the others.
  std::deque<TraceSpan> spans MILLRACE_GUARDED_BY(mutex){};
  std::deque<TraceValue> values MILLRACE_GUARDED_BY(mutex){};
};

bool Trace::State::drop_oldest() {
  // While this mutex is locked, no lane with events loses its last one.
  MutexLock lock(mutex);
  Lane::State* oldest = nullptr;
  std::pair least{true, Common::never};
  for (const auto& one : lanes) {
    Lane::State& lane = *one->state_;
    MutexLock lane_lock(lane.mutex);
    const bool has_several = lane.spans.size() + lane.values.size() > 1;
    const std::pair order{!has_several, lane.oldest_ns()};
    if (order >= least) continue;
    oldest = &lane;
    least = order;
  }
  if (oldest == nullptr) return false;
  MutexLock lane_lock(oldest->mutex);
  return oldest->drop_oldest();
}

Trace::Lane::Lane(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trace::Lane::~Lane() = default;

void Trace::Lane::add(const char* name, Clock::time_point begin, Clock::time_point end,
                      std::uint64_t batch, std::uint64_t record) {
  if (!state_->wanted) return;
  const std::int64_t begin_ns = state_->common.since_start(begin);
  const std::int64_t end_ns = state_->common.since_start(end);
  if (end_ns < 0) return;
  state_->keep(state_->common.take(begin_ns),
               TraceSpan{name, std::max<std::int64_t>(begin_ns, 0), end_ns, batch, record});
}

void Trace::Lane::set(Clock::time_point at, std::int64_t value) {
  if (!state_->wanted) return;
  const std::int64_t at_ns = state_->common.since_start(at);
  state_->keep(state_->common.take(at_ns), TraceValue{std::max<std::int64_t>(at_ns, 0), value});
}

void Trace::Lane::set_current_thread() {
  if (state_->thread.load(std::memory_order_relaxed) == 0)
    state_->thread.store(gettid(), std::memory_order_relaxed);
}

Trace::Trace(TraceOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Trace::~Trace() = default;

std::size_t Trace::add_group(std::string name) {
  MutexLock lock(state_->mutex);
  state_->groups.push_back(std::move(name));
  return state_->groups.size() - 1;
}

std::size_t Trace::group(const std::string& name) {
  {
    MutexLock lock(state_->mutex);
    const auto found = std::ranges::find(state_->groups.rbegin(), state_->groups.rend(), name);
    if (found != state_->groups.rend())
      return static_cast<std::size_t>(state_->groups.rend() - found) - 1;
  }
  return add_group(name);
}

Trace::Lane& Trace::add_lane(std::size_t group, std::string name, std::string category) {
  MutexLock lock(state_->mutex);
  if (group >= state_->groups.size())
    throw Error(ErrorCode::invalid_argument, "the trace has " +
                                                 std::to_string(state_->groups.size()) +
                                                 " groups, no group " + std::to_string(group));
  state_->lanes.emplace_back(new Lane(std::unique_ptr<Lane::State>(
      new Lane::State{group, std::move(name), std::move(category), *state_})));
  return *state_->lanes.back();
}

const char* Trace::keep(const std::string& name) {
  MutexLock lock(state_->mutex);
  return state_->names.insert(name).first->c_str();
}

void Trace::clear() {
  MutexLock lock(state_->mutex);
  Common& common = state_->common;
  common.start_ns.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  common.finish_ns.store(Common::never, std::memory_order_relaxed);
  common.dropped.store(0, std::memory_order_relaxed);
  for (const auto& one : state_->lanes) {
    Lane::State& lane = *one->state_;
    MutexLock lane_lock(lane.mutex);
    // Room that another thread has taken for an event stays taken, as that of the kept value.
    std::size_t removed = lane.spans.size();
    lane.spans.clear();
    if (!lane.values.empty()) {
      removed += lane.values.size() - 1;
      lane.values = {{0, lane.values.back().value}};
    }
    common.events.fetch_sub(removed, std::memory_order_relaxed);
  }
}

void Trace::finish() {
  Common& common = state_->common;
  common.finish_ns.store(common.since_start(Clock::now()), std::memory_order_relaxed);
}

std::vector<TraceLane> Trace::lanes() const {
  MutexLock lock(state_->mutex);
  std::vector<TraceLane> lanes;
  for (const auto& one : state_->lanes) {
    Lane::State& lane = *one->state_;
    MutexLock lane_lock(lane.mutex);
    lanes.push_back({lane.group,
                     lane.name,
                     {lane.spans.begin(), lane.spans.end()},
                     {lane.values.begin(), lane.values.end()},
                     lane.category,
                     lane.thread.load(std::memory_order_relaxed)});
  }
  return lanes;
}

std::vector<std::string> Trace::groups() const {
  MutexLock lock(state_->mutex);
  return state_->groups;
}

std::uint64_t Trace::dropped() const {
  return state_->common.dropped.load(std::memory_order_relaxed);
}

void Trace::write_json(std::ostream& out) const {
  const std::int64_t start_ns = state_->common.start_ns.load(std::memory_order_relaxed);
  write_trace_json({groups(), lanes(), start_ns, dropped()}, out);
}

void Trace::write_json(const std::filesystem::path& path) const {
  auto file = open_stream<std::ofstream>(path, std::ios::trunc | std::ios::binary);
  if (file) write_json(file);
  file.close();
  if (!file)
    throw Error(ErrorCode::io,
                path.string() + ": the trace cannot be written: " + errno_text(errno));
}

}  // namespace millrace
