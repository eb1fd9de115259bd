// SPDX-License-Identifier: Apache-2.0
#include "measure/page/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "measure/text/text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The interval that is shown, in nanoseconds since the trace began.
struct ShownStretch {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool shows(const TraceSpan& span) const {
    return span.end_ns > begin_ns && span.begin_ns < end_ns;
  }
  /// Microseconds since the interval began.
  std::int64_t microseconds(std::int64_t at_ns) const {
    return (std::clamp(at_ns, begin_ns, end_ns) - begin_ns + 500) / 1000;
  }
};

std::string seconds_text(std::int64_t nanoseconds) {
  return duration_text(static_cast<double>(nanoseconds) / 1e6);
}

/// Removes the excess worker lanes of each group. Returns the number of removed lanes.
std::size_t drop_worker_lanes(std::vector<const TraceLane*>& lanes, std::size_t most) {
  std::map<std::size_t, std::size_t> workers;
  return std::erase_if(lanes, [&](const TraceLane* lane) {
    return lane->name.starts_with("worker ") && ++workers[lane->group] > most;
  });
}

/// Returns the longest stall of a trainer; null if no stall lasts a millisecond.
const TraceSpan* longest_stall(const std::vector<const TraceLane*>& lanes) {
  constexpr std::int64_t worth_a_look_ns = 1'000'000;
  const TraceSpan* longest = nullptr;
  for (const TraceLane* lane : lanes)
    for (const TraceSpan& span : lane->spans)
      if (lane->name == "trainer" && std::string_view(span.name) == "stall" &&
          span.end_ns - span.begin_ns >=
              (longest ? longest->end_ns - longest->begin_ns + 1 : worth_a_look_ns))
        longest = &span;
  return longest;
}

/// Returns the last interval of the trace within the limits. If `stall` is not null, the interval
/// ends at most a fifth of the limits after the stall. It may end later if the stall is near the
/// trace's begin.
ShownStretch stretch_of(const std::vector<const TraceLane*>& lanes, const TimelineLimits& limits,
                        const TraceSpan* stall) {
  std::vector<std::int64_t> ends;
  for (const TraceLane* lane : lanes) {
    for (const TraceSpan& span : lane->spans) ends.push_back(span.end_ns);
    for (const TraceValue& value : lane->values) ends.push_back(value.at_ns);
  }
  if (ends.empty()) return {};
  std::ranges::sort(ends);
  std::size_t shown = ends.size();
  if (stall != nullptr) {
    const auto ended_by = [&](std::int64_t time) {
      return static_cast<std::size_t>(std::ranges::upper_bound(ends, time) - ends.begin());
    };
    const std::int64_t until =
        std::max(stall->end_ns + limits.nanoseconds / 5, ends.front() + limits.nanoseconds);
    shown = std::min(ended_by(until),
                     std::max(ended_by(stall->end_ns) + limits.events / 5, limits.events));
  }
  const std::int64_t last = ends[shown - 1];
  std::int64_t begin = std::max<std::int64_t>(0, last - limits.nanoseconds);
  if (shown > limits.events) begin = std::max(begin, ends[shown - 1 - limits.events]);
  return {begin, last};
}

/// Whole numbers, stored as differences from the previous number, because these are shorter.
class Differences {
 public:
  void add(std::uint64_t value) {
    numbers_.push_back(static_cast<std::int64_t>(value - last_));
    last_ = value;
  }
  /// Adds the number of a batch or record; null if the span has none.
  void add_number(std::uint64_t number) {
    if (number == TraceSpan::none)
      numbers_.push_back(nullptr);
    else
      add(number);
    has_number_ |= number != TraceSpan::none;
  }
  bool has_number() const { return has_number_; }
  const Json& json() const { return numbers_; }

 private:
  std::uint64_t last_ = 0;
  bool has_number_ = false;
  Json numbers_ = Json::array();
};

/// Spans of one name in a lane. Each span is stored as two numbers in microseconds: the gap before
/// it and its length.
class Kind {
 public:
  void add(const TraceSpan& span, const ShownStretch& stretch) {
    const std::int64_t begin = std::max(stretch.microseconds(span.begin_ns), at_);
    const std::int64_t length =
        std::max<std::int64_t>(stretch.microseconds(span.end_ns) - begin, 1);
    spans_.insert(spans_.end(), {begin - at_, length});
    at_ = begin + length;
    batches_.add_number(span.batch);
    records_.add_number(span.record);
    all_us_ += length;
    longest_us_ = std::max(longest_us_, length);
  }

  Json json(std::string_view name) const {
    Json kind = {{"name", name}, {"spans", spans_}};
    if (batches_.has_number()) kind["batch"] = batches_.json();
    if (records_.has_number()) kind["record"] = records_.json();
    return kind;
  }

  std::vector<std::string> row(const std::string& lane, std::string_view name) const {
    return {fmt::format("{}: {}", lane, name), std::to_string(spans_.size() / 2),
            seconds_text(1000 * all_us_), seconds_text(1000 * longest_us_)};
  }

 private:
  std::int64_t at_ = 0;
  std::int64_t all_us_ = 0;
  std::int64_t longest_us_ = 0;
  std::vector<std::int64_t> spans_;
  Differences batches_;
  Differences records_;
};

/// Adds a lane's spans to the table, and returns them as JSON for the chart.
Json spans_json(const TraceLane& lane, const ShownStretch& stretch, Table& table) {
  std::map<std::string_view, Kind> kinds;
  for (const TraceSpan& span : lane.spans)
    if (stretch.shows(span)) kinds[span.name].add(span, stretch);
  Json json = {{"name", lane.name}, {"kinds", Json::array()}};
  for (const auto& [name, kind] : kinds) {
    json["kinds"].push_back(kind.json(name));
    table.rows.push_back(kind.row(lane.name, name));
  }
  return json;
}

/// Does the same for a counter's values. The last value before the interval becomes the value at
/// the interval's start. Without such a value, the start has 0.
Json counter_json(const TraceLane& lane, const ShownStretch& stretch, Table& table) {
  const auto first = std::ranges::find_if(
      lane.values, [&](const TraceValue& value) { return value.at_ns > stretch.begin_ns; });
  std::int64_t least = first == lane.values.begin() ? 0 : std::prev(first)->value;
  std::int64_t most = least;
  Differences times;
  Differences values;
  times.add(0);
  values.add(static_cast<std::uint64_t>(least));
  for (auto value = first; value != lane.values.end() && value->at_ns <= stretch.end_ns; ++value) {
    times.add(static_cast<std::uint64_t>(stretch.microseconds(value->at_ns)));
    values.add(static_cast<std::uint64_t>(value->value));
    least = std::min(least, value->value);
    most = std::max(most, value->value);
  }
  table.rows.push_back({lane.name, std::to_string(least), std::to_string(most)});
  return {{"name", lane.name}, {"times", times.json()}, {"values", values.json()}};
}

}  // namespace

TracePicture picture_of(const Trace& trace) {
  return {trace.groups(), trace.lanes(), trace.dropped()};
}

Section timeline_section(const TracePicture& picture, const TimelineLimits& limits) {
  Section section{.title = "Timeline", .text = "The trace holds nothing."};
  std::vector<const TraceLane*> lanes;
  std::size_t events = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t end_ns = 0;
  for (const TraceLane& lane : picture.lanes) {
    if (lane.spans.empty() && lane.values.empty()) continue;
    lanes.push_back(&lane);
    events += lane.spans.size();
    for (const TraceSpan& span : lane.spans) {
      first_ns = std::min(first_ns, span.begin_ns);
      end_ns = std::max(end_ns, span.end_ns);
    }
    for (const TraceValue& value : lane.values) end_ns = std::max(end_ns, value.at_ns);
  }
  if (lanes.empty()) return section;
  std::ranges::stable_sort(lanes, {}, &TraceLane::group);
  const std::size_t left_out = drop_worker_lanes(lanes, limits.worker_lanes);
  const TraceSpan* const stall = longest_stall(lanes);
  const ShownStretch stretch = stretch_of(lanes, limits, stall);

  Table spans{.title = "What each lane did",
              .head = {"Lane", "Times", "In all", "Longest"},
              .repeats_chart = true};
  Table counters{.title = "Counters", .head = {"Counter", "Least", "Most"}, .repeats_chart = true};
  Json groups = Json::array();
  std::size_t shown = 0;
  std::size_t group = SIZE_MAX;
  for (const TraceLane* lane : lanes) {
    if (lane->group != group) {
      group = lane->group;
      groups.push_back({{"name", group < picture.groups.size() ? picture.groups[group] : ""},
                        {"lanes", Json::array()}});
    }
    groups.back()["lanes"].push_back(lane->values.empty() ? spans_json(*lane, stretch, spans)
                                                          : counter_json(*lane, stretch, counters));
    shown += static_cast<std::size_t>(std::ranges::count_if(
        lane->spans, [&](const TraceSpan& span) { return stretch.shows(span); }));
  }
  section.chart = make_chart(
      "timeline", {{"begin", stretch.begin_ns / 1000},
                   {"length", std::max<std::int64_t>(stretch.microseconds(stretch.end_ns), 1)},
                   {"groups", groups}});
  for (Table* table : {&spans, &counters})
    if (!table->rows.empty()) section.tables.push_back(std::move(*table));

  const std::string shown_text = seconds_text(stretch.end_ns - stretch.begin_ns);
  const std::string all = seconds_text(end_ns - std::min(first_ns, stretch.begin_ns));
  const std::string longest = stall == nullptr
                                  ? ""
                                  : fmt::format(", with the longest stall ({} at {})",
                                                seconds_text(stall->end_ns - stall->begin_ns),
                                                seconds_text(stall->begin_ns));
  section.text = shown == events
                     ? fmt::format("All {} spans of {}.", events, shown_text)
                     : fmt::format("{} {} of {}{}: {} of {} spans.",
                                   stretch.end_ns == end_ns ? "The last" : "A stretch of",
                                   shown_text, all, longest, shown, events);
  if (left_out > 0)
    section.text += fmt::format(" {} {} not drawn.", count_text(left_out, "further worker"),
                                left_out == 1 ? "is" : "are");
  if (picture.dropped > 0)
    section.text +=
        fmt::format(" {} further spans and values did not fit into the trace.", picture.dropped);
  if (shown < events || left_out > 0)
    section.text +=
        " The whole trace is what `bench --trace FILE` writes, for trace viewers such as Perfetto.";
  return section;
}

}  // namespace millrace::cli
