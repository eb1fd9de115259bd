// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/trace.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/mutex.h"

namespace millrace {
namespace {

/// What all lanes of a trace share.
struct Common {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  explicit Common(TraceOptions options)
      : max_events(options.max_events), wanted(std::move(options.lanes)) {}

  /// Takes room for one event that begins at `begin_ns`; false if it is too late or there is no
  /// room left.
  bool take(std::int64_t begin_ns) {
    if (begin_ns >= finish_ns.load(std::memory_order_relaxed)) return false;
    if (events.fetch_add(1, std::memory_order_relaxed) < max_events) return true;
    dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  std::int64_t since_start(Trace::Clock::time_point time) const {
    return time.time_since_epoch().count() - start_ns.load(std::memory_order_relaxed);
  }

  const std::size_t max_events;
  const std::vector<std::string> wanted;
  // These counts and times order nothing.
  std::atomic<std::size_t> events{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::int64_t> start_ns{Trace::Clock::now().time_since_epoch().count()};
  /// Since the start.
  std::atomic<std::int64_t> finish_ns{never};
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Nanoseconds as microseconds with three digits behind the point, whatever the locale is.
std::string microseconds(std::int64_t ns) {
  char text[48];
  return {text, std::to_chars(text, std::end(text), static_cast<double>(ns) / 1e3,
                              std::chars_format::fixed, 3)
                    .ptr};
}

}  // namespace

struct Trace::Lane::State {
  const std::size_t group;
  const std::string name;
  Common& common;
  const bool wanted =
      common.wanted.empty() || std::ranges::find(common.wanted, name) != common.wanted.end();
  Mutex mutex{};
  // They are deques, so that no span has to wait while the others are moved.
  std::deque<TraceSpan> spans MILLRACE_GUARDED_BY(mutex){};
  std::deque<TraceValue> values MILLRACE_GUARDED_BY(mutex){};
};

Trace::Lane::Lane(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trace::Lane::~Lane() = default;

void Trace::Lane::add(const char* name, Clock::time_point begin, Clock::time_point end,
                      std::uint64_t batch, std::uint64_t record) {
  if (!state_->wanted) return;
  const std::int64_t begin_ns = state_->common.since_start(begin);
  const std::int64_t end_ns = state_->common.since_start(end);
  if (end_ns < 0 || !state_->common.take(begin_ns)) return;
  MutexLock lock(state_->mutex);
  state_->spans.push_back({name, std::max<std::int64_t>(begin_ns, 0), end_ns, batch, record});
}

void Trace::Lane::set(Clock::time_point at, std::int64_t value) {
  if (!state_->wanted) return;
  const std::int64_t at_ns = state_->common.since_start(at);
  if (!state_->common.take(at_ns)) return;
  MutexLock lock(state_->mutex);
  state_->values.push_back({std::max<std::int64_t>(at_ns, 0), value});
}

struct Trace::State {
  explicit State(TraceOptions options) : common(std::move(options)) {}

  Common common;
  Mutex mutex{};
  std::vector<std::string> groups MILLRACE_GUARDED_BY(mutex){};
  std::vector<std::unique_ptr<Lane>> lanes MILLRACE_GUARDED_BY(mutex){};
  std::set<std::string> names MILLRACE_GUARDED_BY(mutex){};
};

Trace::Trace(TraceOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Trace::~Trace() = default;

std::size_t Trace::add_group(std::string name) {
  MutexLock lock(state_->mutex);
  state_->groups.push_back(std::move(name));
  return state_->groups.size() - 1;
}

Trace::Lane& Trace::add_lane(std::size_t group, std::string name) {
  MutexLock lock(state_->mutex);
  if (group >= state_->groups.size())
    throw Error(ErrorCode::invalid_argument, "the trace has " +
                                                 std::to_string(state_->groups.size()) +
                                                 " groups, no group " + std::to_string(group));
  state_->lanes.emplace_back(new Lane(
      std::unique_ptr<Lane::State>(new Lane::State{group, std::move(name), state_->common})));
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
  common.events.store(0, std::memory_order_relaxed);
  common.dropped.store(0, std::memory_order_relaxed);
  for (const auto& one : state_->lanes) {
    Lane::State& lane = *one->state_;
    MutexLock lane_lock(lane.mutex);
    lane.spans.clear();
    if (!lane.values.empty()) lane.values = {{0, lane.values.back().value}};
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
                     {lane.values.begin(), lane.values.end()}});
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
  const std::vector<std::string> groups = this->groups();
  const std::vector<TraceLane> lanes = this->lanes();
  out << R"({"displayTimeUnit":"ms","otherData":{"writer":"millrace","dropped_events":")"
      << dropped() << R"("},"traceEvents":[)";
  const char* separator = "\n";
  const auto event = [&](char phase, const std::string& name, std::size_t pid) -> std::ostream& {
    out << std::exchange(separator, ",\n") << R"({"ph":")" << phase << R"(","name":)" << name
        << R"(,"pid":)" << pid;
    return out;
  };
  for (std::size_t group = 0; group < groups.size(); ++group)
    event('M', "\"process_name\"", group + 1)
        << R"(,"tid":0,"args":{"name":)" << quoted(groups[group]) << "}}";
  for (std::size_t number = 0; number < lanes.size(); ++number) {
    const TraceLane& lane = lanes[number];
    const std::size_t pid = lane.group + 1;
    const std::string tid = R"(,"tid":)" + std::to_string(number + 1);
    const std::string name = quoted(lane.name);
    if (lane.values.empty()) {
      event('M', "\"thread_name\"", pid) << tid << R"(,"args":{"name":)" << name << "}}";
      event('M', "\"thread_sort_index\"", pid)
          << tid << R"(,"args":{"sort_index":)" << number << "}}";
    }
    for (const TraceSpan& span : lane.spans) {
      event('X', quoted(span.name), pid)
          << tid << R"(,"ts":)" << microseconds(span.begin_ns) << R"(,"dur":)"
          << microseconds(span.end_ns - span.begin_ns) << R"(,"args":{)";
      if (span.batch != TraceSpan::none) out << R"("batch":)" << span.batch;
      if (span.batch != TraceSpan::none && span.record != TraceSpan::none) out << ',';
      if (span.record != TraceSpan::none) out << R"("record":)" << span.record;
      out << "}}";
    }
    for (const TraceValue& value : lane.values)
      event('C', name, pid) << R"(,"ts":)" << microseconds(value.at_ns) << R"(,"args":{"value":)"
                            << value.value << "}}";
  }
  out << "\n]}\n";
}

void Trace::write_json(const std::filesystem::path& path) const {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  if (file) write_json(file);
  file.close();
  if (!file)
    throw Error(ErrorCode::io,
                path.string() + ": the trace cannot be written: " + std::strerror(errno));
}

}  // namespace millrace
