// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/trace.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <set>

#include "base/mutex.h"
#include "report/trace_json.h"

namespace millrace {
namespace {

/// What all lanes of a trace share.
struct Common {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  explicit Common(TraceOptions options)
      : max_events(options.max_events), wanted(std::move(options.lanes)) {}

  bool wants(const std::string& lane) const {
    return wanted.empty() || std::ranges::find(wanted, lane) != wanted.end();
  }

  /// Takes room for one event; false when there is none left.
  bool take() {
    if (events.fetch_add(1, std::memory_order_relaxed) < max_events) return true;
    dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  bool is_over(std::int64_t ns) const { return ns >= finish_ns.load(std::memory_order_relaxed); }
  std::int64_t since_start(Trace::Clock::time_point time) const {
    return time.time_since_epoch().count() - start_ns.load(std::memory_order_relaxed);
  }

  const std::size_t max_events;
  const std::vector<std::string> wanted;
  // Counts and a time that order nothing.
  std::atomic<std::size_t> events{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::int64_t> start_ns{Trace::Clock::now().time_since_epoch().count()};
  /// Since the start.
  std::atomic<std::int64_t> finish_ns{never};
};

}  // namespace

class Trace::Lane::Impl {
 public:
  Impl(std::size_t group, std::string name, Common& common)
      : group_(group), name_(std::move(name)), wanted_(common.wants(name_)), common_(common) {}

  void add(const char* name, Clock::time_point begin, Clock::time_point end, std::uint64_t batch,
           std::uint64_t record) {
    if (!wanted_) return;
    const std::int64_t begin_ns = common_.since_start(begin);
    const std::int64_t end_ns = common_.since_start(end);
    if (end_ns < 0 || common_.is_over(begin_ns) || !common_.take()) return;
    MutexLock lock(mutex_);
    spans_.push_back({name, std::max<std::int64_t>(begin_ns, 0), end_ns, batch, record});
  }

  void set(Clock::time_point at, std::int64_t value) {
    if (!wanted_) return;
    const std::int64_t at_ns = common_.since_start(at);
    if (common_.is_over(at_ns) || !common_.take()) return;
    MutexLock lock(mutex_);
    values_.push_back({std::max<std::int64_t>(at_ns, 0), value});
  }

  void clear() {
    MutexLock lock(mutex_);
    spans_.clear();
    if (values_.empty()) return;
    values_ = {{0, values_.back().value}};
  }

  TraceLane copy() const {
    MutexLock lock(mutex_);
    return {group_, name_, {spans_.begin(), spans_.end()}, {values_.begin(), values_.end()}};
  }

 private:
  const std::size_t group_;
  const std::string name_;
  const bool wanted_;
  Common& common_;
  mutable Mutex mutex_;
  // Deques, so that no span has to wait for the others to be moved.
  std::deque<TraceSpan> spans_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<TraceValue> values_ MILLRACE_GUARDED_BY(mutex_);
};

Trace::Lane::Lane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::Lane::~Lane() = default;

void Trace::Lane::add(const char* name, Clock::time_point begin, Clock::time_point end,
                      std::uint64_t batch, std::uint64_t record) {
  impl_->add(name, begin, end, batch, record);
}

void Trace::Lane::set(Clock::time_point at, std::int64_t value) { impl_->set(at, value); }

class Trace::Impl {
 public:
  explicit Impl(TraceOptions options) : common_(std::move(options)) {}

  std::size_t add_group(std::string name) {
    MutexLock lock(mutex_);
    groups_.push_back(std::move(name));
    return groups_.size() - 1;
  }

  Lane& add_lane(std::size_t group, std::string name) {
    MutexLock lock(mutex_);
    if (group >= groups_.size())
      throw Error(ErrorCode::invalid_argument, "the trace has " + std::to_string(groups_.size()) +
                                                   " groups, no group " + std::to_string(group));
    lanes_.push_back(std::unique_ptr<Lane>(
        new Lane(std::make_unique<Lane::Impl>(group, std::move(name), common_))));
    return *lanes_.back();
  }

  const char* keep(const std::string& name) {
    MutexLock lock(mutex_);
    return names_.insert(name).first->c_str();
  }

  void clear() {
    MutexLock lock(mutex_);
    common_.start_ns.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    common_.finish_ns.store(Common::never, std::memory_order_relaxed);
    common_.events.store(0, std::memory_order_relaxed);
    common_.dropped.store(0, std::memory_order_relaxed);
    for (const auto& lane : lanes_) lane->impl_->clear();
  }

  void finish() {
    common_.finish_ns.store(common_.since_start(Clock::now()), std::memory_order_relaxed);
  }

  std::vector<TraceLane> lanes() const {
    MutexLock lock(mutex_);
    std::vector<TraceLane> lanes;
    for (const auto& lane : lanes_) lanes.push_back(lane->impl_->copy());
    return lanes;
  }

  std::vector<std::string> groups() const {
    MutexLock lock(mutex_);
    return groups_;
  }

  std::uint64_t dropped() const { return common_.dropped.load(std::memory_order_relaxed); }

 private:
  Common common_;
  mutable Mutex mutex_;
  std::vector<std::string> groups_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Lane>> lanes_ MILLRACE_GUARDED_BY(mutex_);
  std::set<std::string> names_ MILLRACE_GUARDED_BY(mutex_);
};

Trace::Trace(TraceOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Trace::~Trace() = default;

std::size_t Trace::add_group(std::string name) { return impl_->add_group(std::move(name)); }
Trace::Lane& Trace::add_lane(std::size_t group, std::string name) {
  return impl_->add_lane(group, std::move(name));
}
const char* Trace::keep(const std::string& name) { return impl_->keep(name); }
void Trace::clear() { impl_->clear(); }
void Trace::finish() { impl_->finish(); }
std::vector<TraceLane> Trace::lanes() const { return impl_->lanes(); }
std::vector<std::string> Trace::groups() const { return impl_->groups(); }
std::uint64_t Trace::dropped() const { return impl_->dropped(); }

void Trace::write_json(std::ostream& out) const {
  write_trace_json(out, groups(), lanes(), dropped());
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
