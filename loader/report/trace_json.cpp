// SPDX-License-Identifier: Apache-2.0
#include "report/trace_json.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Nanoseconds as microseconds, to the nanosecond.
std::string microseconds(std::int64_t ns) {
  char text[32];
  const char* const sign = ns < 0 ? "-" : "";
  const auto size = static_cast<std::uint64_t>(ns < 0 ? -ns : ns);
  std::snprintf(text, sizeof text, "%s%llu.%03llu", sign,
                static_cast<unsigned long long>(size / 1000),
                static_cast<unsigned long long>(size % 1000));
  return text;
}

/// Writes events with the commas between them.
class Events {
 public:
  explicit Events(std::ostream& out) : out_(out) {}

  std::ostream& next() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
    return out_;
  }

  void metadata(const char* kind, std::size_t pid, std::size_t tid, const std::string& key,
                const std::string& value) {
    next() << R"({"ph":"M","name":")" << kind << R"(","pid":)" << pid << R"(,"tid":)" << tid
           << R"(,"args":{")" << key << "\":" << value << "}}";
  }

  void span(const TraceSpan& span, const std::string& name, std::size_t pid, std::size_t tid) {
    next() << R"({"ph":"X","name":)" << name << R"(,"pid":)" << pid << R"(,"tid":)" << tid
           << R"(,"ts":)" << microseconds(span.begin_ns) << R"(,"dur":)"
           << microseconds(span.end_ns - span.begin_ns) << R"(,"args":{)";
    if (span.batch != TraceSpan::none) out_ << R"("batch":)" << span.batch;
    if (span.batch != TraceSpan::none && span.record != TraceSpan::none) out_ << ',';
    if (span.record != TraceSpan::none) out_ << R"("record":)" << span.record;
    out_ << "}}";
  }

  void value(const TraceValue& value, const std::string& name, std::size_t pid) {
    next() << R"({"ph":"C","name":)" << name << R"(,"pid":)" << pid << R"(,"ts":)"
           << microseconds(value.at_ns) << R"(,"args":{"value":)" << value.value << "}}";
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_trace_json(std::ostream& out, const std::vector<std::string>& groups,
                      const std::vector<TraceLane>& lanes, std::uint64_t dropped) {
  out << R"({"displayTimeUnit":"ms","otherData":{"writer":"millrace","dropped_events":")" << dropped
      << R"("},"traceEvents":[)";
  Events events(out);
  for (std::size_t group = 0; group < groups.size(); ++group)
    events.metadata("process_name", group + 1, 0, "name", quoted(groups[group]));
  for (std::size_t number = 0; number < lanes.size(); ++number) {
    const TraceLane& lane = lanes[number];
    const std::size_t pid = lane.group + 1;
    const std::size_t tid = number + 1;
    const std::string lane_name = quoted(lane.name);
    if (lane.values.empty()) {
      events.metadata("thread_name", pid, tid, "name", lane_name);
      events.metadata("thread_sort_index", pid, tid, "sort_index", std::to_string(number));
    }
    for (const TraceSpan& span : lane.spans) events.span(span, quoted(span.name), pid, tid);
    for (const TraceValue& value : lane.values) events.value(value, lane_name, pid);
  }
  out << "\n]}\n";
}

}  // namespace millrace
