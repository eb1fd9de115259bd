// SPDX-License-Identifier: Apache-2.0
//
// The Trace Event Format ("Trace Event Format", Google, 2016).
#include "report/trace_json.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

namespace millrace {
namespace {

/// Larger than every thread number of Linux (PID_MAX_LIMIT).
constexpr std::size_t above_threads = std::size_t{1} << 22;

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Formats nanoseconds as microseconds with three decimal digits, in any locale.
std::string microseconds(std::int64_t ns) {
  char text[48];
  return {text, std::to_chars(text, std::end(text), static_cast<double>(ns) / 1e3,
                              std::chars_format::fixed, 3)
                    .ptr};
}

/// A point of a batch's flow, inside a span through which the flow passes.
struct Moment {
  std::int64_t at_ns = 0;
  std::size_t thread = 0;
};

class Writer {
 public:
  Writer(const TraceContents& trace, std::ostream& out) : trace_(trace), out_(out) {}

  void write() {
    head();
    for (std::size_t number = 0; number < trace_.lanes.size(); ++number) lane(number);
    flows();
    out_ << "\n]}\n";
  }

 private:
  void head() {
    using std::chrono::nanoseconds;
    const auto since_start =
        nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count() - trace_.start_ns;
    const auto unix_now = nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
    out_ << R"({"displayTimeUnit":"ms","otherData":{"writer":"millrace","dropped_events":")"
         << trace_.dropped << R"(","begin_monotonic_ns":")" << trace_.start_ns
         << R"(","begin_unix_ns":")" << unix_now - since_start << R"("},"traceEvents":[)";
    std::string names;
    for (const std::string& group : trace_.groups) names += (names.empty() ? "" : ", ") + group;
    event('M', "\"process_name\"") << R"(,"tid":0,"args":{"name":)" << json_text(names) << "}}";
  }

  std::ostream& event(char phase, const std::string& name) {
    return out_ << std::exchange(separator_, ",\n") << R"({"ph":")" << phase << R"(","name":)"
                << name << R"(,"pid":)" << process_;
  }

  std::size_t thread_of(std::size_t lane) const {
    const int thread = trace_.lanes[lane].thread;
    return thread > 0 ? static_cast<std::size_t>(thread) : above_threads + lane + 1;
  }

  /// Returns the displayed name of a lane. A worker that several pipelines share has the same
  /// thread number in all groups, so its name has no group.
  std::string name_of(const TraceLane& lane) const {
    const bool shared = std::ranges::count(trace_.lanes, lane.thread, &TraceLane::thread) > 1;
    const bool alone = trace_.groups.size() == 1 || (lane.thread > 0 && shared);
    return json_text(alone ? lane.name : trace_.groups.at(lane.group) + ": " + lane.name);
  }

  void lane(std::size_t number) {
    const TraceLane& lane = trace_.lanes[number];
    const std::size_t thread = thread_of(number);
    const std::string tid = R"(,"tid":)" + std::to_string(thread);
    const std::string name = name_of(lane);
    if (lane.values.empty() && named_.insert(thread).second) {
      event('M', "\"thread_name\"") << tid << R"(,"args":{"name":)" << name << "}}";
      event('M', "\"thread_sort_index\"") << tid << R"(,"args":{"sort_index":)" << number << "}}";
    }
    const std::string category = json_text(lane.category.empty() ? "trainer" : lane.category);
    for (const TraceSpan& span : lane.spans) {
      event('X', json_text(span.name))
          << R"(,"cat":)" << category << tid << R"(,"ts":)" << microseconds(span.begin_ns)
          << R"(,"dur":)" << microseconds(span.end_ns - span.begin_ns) << R"(,"args":{)";
      if (span.batch != TraceSpan::none) out_ << R"("batch":)" << span.batch;
      if (span.batch != TraceSpan::none && span.record != TraceSpan::none) out_ << ',';
      if (span.record != TraceSpan::none) out_ << R"("record":)" << span.record;
      out_ << "}}";
      if (span.batch != TraceSpan::none && !lane.category.empty()) note(lane, span, thread);
    }
    for (const TraceValue& value : lane.values)
      event('C', name) << R"(,"ts":)" << microseconds(value.at_ns) << R"(,"args":{"value":)"
                       << value.value << "}}";
  }

  /// Updates a batch's flow. The flow passes through the span of each category that ends last: the
  /// last sample, the last micro-batch. The flow meets a stream's span at its begin and a thread's
  /// span at its end.
  void note(const TraceLane& lane, const TraceSpan& span, std::size_t thread) {
    Last& last = batches_[{lane.group, span.batch}][lane.category];
    if (span.end_ns < last.end_ns) return;
    last = {span.end_ns,
            {lane.thread > 0 ? std::max(span.begin_ns, span.end_ns - 1) : span.begin_ns, thread}};
  }

  void flows() {
    std::size_t id = 0;
    for (const auto& [batch, categories] : batches_) {
      std::vector<Moment> way;
      for (const auto& [category, last] : categories) way.push_back(last.moment);
      if (way.size() < 2) continue;
      std::ranges::sort(way, {}, &Moment::at_ns);
      ++id;
      for (std::size_t step = 0; step < way.size(); ++step) {
        const bool end = step + 1 == way.size();
        event(step == 0 ? 's'
              : end     ? 'f'
                        : 't',
              "\"batch\"")
            << R"(,"cat":"batch","id":)" << id << R"(,"tid":)" << way[step].thread << R"(,"ts":)"
            << microseconds(way[step].at_ns) << (end ? R"(,"bp":"e")" : "")
            << R"(,"args":{"batch":)" << batch.second << "}}";
      }
    }
  }

  struct Last {
    std::int64_t end_ns = -1;
    Moment moment{};
  };

  const TraceContents& trace_;
  std::ostream& out_;
  const pid_t process_ = getpid();
  const char* separator_ = "\n";
  std::set<std::size_t> named_{};
  /// Last spans of each category, by group and batch number.
  std::map<std::pair<std::size_t, std::uint64_t>, std::map<std::string, Last>> batches_{};
};

}  // namespace

void write_trace_json(const TraceContents& trace, std::ostream& out) { Writer(trace, out).write(); }

}  // namespace millrace
