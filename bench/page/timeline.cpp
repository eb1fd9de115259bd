// SPDX-License-Identifier: Apache-2.0
#include "page/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>

#include "page/html_page.h"
#include "page/span_style.h"
#include "page/svg_chart.h"

namespace millrace::cli {
namespace {

constexpr double axis_height = 24;
constexpr double group_height = 26;
constexpr double lane_height = 16;
constexpr double lane_gap = 4;
constexpr double counter_height = 34;

/// The stretch of time that is shown, in nanoseconds since the trace began.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool shows(const TraceSpan& span) const {
    return span.end_ns > begin_ns && span.begin_ns < end_ns;
  }
  /// Microseconds since its begin.
  std::int64_t microseconds(std::int64_t at_ns) const {
    return (std::clamp(at_ns, begin_ns, end_ns) - begin_ns + 500) / 1000;
  }
  std::int64_t length() const { return std::max<std::int64_t>(microseconds(end_ns), 1); }
};

bool is_worker(const TraceLane& lane) { return lane.name.starts_with("worker "); }

/// Drops the worker lanes of each group that are too many; returns how many.
std::size_t drop_worker_lanes(std::vector<const TraceLane*>& lanes, std::size_t most) {
  std::map<std::size_t, std::size_t> workers;
  return std::erase_if(lanes, [&](const TraceLane* lane) {
    return is_worker(*lane) && ++workers[lane->group] > most;
  });
}

/// The last stretch with no more events than allowed.
Window last_stretch(const std::vector<const TraceLane*>& lanes, const TimelineLimits& limits) {
  std::vector<std::int64_t> ends;
  for (const TraceLane* lane : lanes) {
    for (const TraceSpan& span : lane->spans) ends.push_back(span.end_ns);
    for (const TraceValue& value : lane->values) ends.push_back(value.at_ns);
  }
  if (ends.empty()) return {};
  const std::int64_t last = *std::max_element(ends.begin(), ends.end());
  std::int64_t begin = std::max<std::int64_t>(0, last - limits.nanoseconds);
  if (ends.size() > limits.events) {
    const auto first_kept = ends.begin() + static_cast<std::ptrdiff_t>(limits.events);
    std::nth_element(ends.begin(), first_kept, ends.end(), std::greater<>());
    begin = std::max(begin, *first_kept);
  }
  return {begin, last};
}

/// Writes whole numbers as differences to the one before, which keeps them short.
class Differences {
 public:
  void add(std::uint64_t value) {
    fmt::format_to(std::back_inserter(text_), "{}{}", text_.empty() ? "" : " ",
                   static_cast<std::int64_t>(value - last_));
    last_ = value;
  }
  void add_none() { text_ += text_.empty() ? "-" : " -"; }
  const std::string& text() const { return text_; }

 private:
  std::uint64_t last_ = 0;
  std::string text_;
};

/// The spans of one name in a lane, as one path: a stroke as thick as the lane's bars, "m gap 0 h
/// length" for each.
class SpanPath {
 public:
  void add(const TraceSpan& span, const Window& window) {
    const std::int64_t begin = std::max(window.microseconds(span.begin_ns), at_);
    const std::int64_t length = std::max<std::int64_t>(window.microseconds(span.end_ns) - begin, 1);
    fmt::format_to(std::back_inserter(path_), "m{} 0h{}", begin - at_, length);
    at_ = begin + length;
    add_number(batches_, span.batch);
    add_number(records_, span.record);
    has_batch_ |= span.batch != TraceSpan::none;
    has_record_ |= span.record != TraceSpan::none;
  }

  std::string svg(std::string_view name, double middle) const {
    const SpanStyle style = span_style(name);
    std::string svg = fmt::format("<path class=\"{}\" stroke-width=\"{:.1f}\" data-name=\"{}\"",
                                  style.css, lane_height * style.thickness, escape(name));
    if (has_batch_) svg += fmt::format(" data-batch=\"{}\"", batches_.text());
    if (has_record_) svg += fmt::format(" data-record=\"{}\"", records_.text());
    return svg + fmt::format(" d=\"M0 {}{}\"/>\n", middle, path_);
  }

 private:
  static void add_number(Differences& numbers, std::uint64_t number) {
    if (number == TraceSpan::none)
      numbers.add_none();
    else
      numbers.add(number);
  }

  std::int64_t at_ = 0;
  std::string path_;
  Differences batches_;
  Differences records_;
  bool has_batch_ = false;
  bool has_record_ = false;
};

/// The drawing as it grows from top to bottom.
class Drawing {
 public:
  Drawing(const TracePicture& picture, Window window) : picture_(picture), window_(window) {}

  void add_group(std::size_t group) {
    const std::string& name =
        group < picture_.groups.size() ? picture_.groups[group] : std::string();
    around_ += fmt::format("<text class=\"group\" x=\"-104\" y=\"{}\">{}</text>\n",
                           y_ + group_height - 8, escape(name));
    y_ += group_height;
  }

  void add_lane(const TraceLane& lane) {
    if (!lane.values.empty())
      add_counter(lane);
    else
      add_spans(lane);
  }

  std::string html() const;

 private:
  void open_lane(const TraceLane& lane, double height) {
    around_ += fmt::format(
        "<rect class=\"lane\" y=\"{0}\" width=\"100%\" height=\"{1}\"/><text class=\"lane\" "
        "x=\"-8\" y=\"{2}\" dy=\"4\" "
        "text-anchor=\"end\">{3}</text>\n",
        y_, height, y_ + height / 2, escape(lane.name));
    inside_ += fmt::format("<g data-lane=\"{}\" data-y=\"{}\" data-height=\"{}\"",
                           escape(lane.name), y_, height);
  }

  void add_spans(const TraceLane& lane) {
    open_lane(lane, lane_height);
    inside_ += ">\n";
    std::map<std::string_view, SpanPath> paths;
    for (const TraceSpan& span : lane.spans) {
      if (!window_.shows(span)) continue;
      paths[span.name].add(span, window_);
      if (std::find(names_.begin(), names_.end(), span.name) == names_.end())
        names_.emplace_back(span.name);
    }
    for (const auto& [name, path] : paths) inside_ += path.svg(name, y_ + lane_height / 2);
    inside_ += "</g>\n";
    y_ += lane_height + lane_gap;
  }

  void add_counter(const TraceLane& lane);

  const TracePicture& picture_;
  const Window window_;
  double y_ = axis_height;
  /// What stays in its place, and what is moved and stretched by zooming.
  std::string around_;
  std::string inside_;
  /// Of spans, in the order they first appear.
  std::vector<std::string_view> names_;
};

void Drawing::add_counter(const TraceLane& lane) {
  std::int64_t most = 1;
  std::int64_t before = 0;
  for (const TraceValue& value : lane.values) {
    if (value.at_ns > window_.begin_ns)
      most = std::max(most, value.value);
    else
      before = value.value;
  }
  most = std::max(most, before);
  open_lane(lane, counter_height);
  around_ +=
      fmt::format("<text class=\"scale\" x=\"100%\" dx=\"4\" y=\"{}\">{}</text>\n", y_ + 9, most);
  const double bottom = y_ + counter_height;
  const auto height_of = [&](std::int64_t value) {
    return bottom - (counter_height - 2) * static_cast<double>(std::max<std::int64_t>(value, 0)) /
                        static_cast<double>(most);
  };
  std::string path = fmt::format("M0 {}V{:.1f}", bottom, height_of(before));
  Differences times;
  Differences values;
  times.add(0);
  values.add(static_cast<std::uint64_t>(before));
  for (const TraceValue& value : lane.values) {
    if (value.at_ns <= window_.begin_ns) continue;
    const std::int64_t at = window_.microseconds(value.at_ns);
    fmt::format_to(std::back_inserter(path), "H{}V{:.1f}", at, height_of(value.value));
    times.add(static_cast<std::uint64_t>(at));
    values.add(static_cast<std::uint64_t>(value.value));
  }
  inside_ += fmt::format(
      "><path class=\"counter\" data-times=\"{}\" data-values=\"{}\" d=\"{}H{}V{}\"/></g>\n",
      times.text(), values.text(), path, window_.length(), bottom);
  y_ += counter_height + lane_gap;
}

std::string legend(std::vector<std::string_view> names) {
  std::stable_sort(names.begin(), names.end(),
                   [](auto a, auto b) { return span_style(a).order < span_style(b).order; });
  std::string html = "<ul class=\"legend\">\n";
  for (const std::string_view name : names) {
    const SpanStyle style = span_style(name);
    html += fmt::format(
        "<li><svg width=\"22\" height=\"{0}\" aria-hidden=\"true\"><path class=\"{1}\" "
        "stroke-width=\"{2:.1f}\" d=\"M0 "
        "{3}h22\"/></svg>"
        "{4}</li>\n",
        lane_height, style.css, lane_height * style.thickness, lane_height / 2, escape(name));
  }
  return html + "</ul>\n";
}

std::string Drawing::html() const {
  const double begin_ms = static_cast<double>(window_.begin_ns) / 1e6;
  const double end_ms = static_cast<double>(window_.end_ns) / 1e6;
  const bool in_seconds = end_ms - begin_ms >= 1000;
  const double unit = in_seconds ? 1000 : 1;
  const ChartAxis axis = linear_axis("", begin_ms / unit, end_ms / unit, 6);
  std::string ticks;
  for (const ChartAxis::Tick& tick : axis.ticks)
    ticks += fmt::format(
        "<line x1=\"{0:.3f}%\" x2=\"{0:.3f}%\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.3f}%\" "
        "y=\"{3}\" text-anchor=\"middle\">{4} "
        "{5}</text>",
        100 * axis.at(tick.value), axis_height - 4, y_, axis_height - 9, tick.label,
        in_seconds ? "s" : "ms");
  return fmt::format(
      "<div class=\"timeline\" data-begin=\"{0:.0f}\" data-length=\"{1}\">\n"
      "<div class=\"tools\" hidden=\"hidden\"><button type=\"button\" data-zoom=\"0.5\" "
      "aria-label=\"Zoom in\">+</button>"
      "<button type=\"button\" data-zoom=\"2\" aria-label=\"Zoom out\">&#8722;</button>"
      "<button type=\"button\" data-move=\"-0.5\" aria-label=\"Earlier\">&#8592;</button>"
      "<button type=\"button\" data-move=\"0.5\" aria-label=\"Later\">&#8594;</button>"
      "<button type=\"button\" data-zoom=\"0\">All</button>"
      "<span>Drag to move, Ctrl + wheel to zoom, point at a bar for its details.</span></div>\n"
      "{2}<div class=\"chart\"><svg width=\"100%\" height=\"{3}\" role=\"img\" "
      "aria-label=\"Timeline\"><title>Timeline</title>"
      "<desc>A row for each worker, thread and stream with a bar for each thing it did, and a "
      "curve for each counter.</desc>\n"
      "{4}<g class=\"ticks\">{5}</g>\n"
      "<svg class=\"spans\" width=\"100%\" height=\"{3}\" viewBox=\"0 0 {1} {3}\" "
      "preserveAspectRatio=\"none\">\n{6}"
      "<rect class=\"pointed\" width=\"0\" height=\"0\"/></svg>\n<g "
      "class=\"names\"></g></svg></div>\n</div>\n",
      static_cast<double>(window_.begin_ns) / 1e3, window_.length(), legend(names_), y_, around_,
      ticks, inside_);
}

std::string seconds_text(std::int64_t nanoseconds) {
  return duration_text(static_cast<double>(nanoseconds) / 1e6);
}

}  // namespace

TracePicture picture_of(const Trace& trace) {
  return {trace.groups(), trace.lanes(), trace.dropped()};
}

Timeline draw_timeline(const TracePicture& picture, const TimelineLimits& limits) {
  std::vector<const TraceLane*> lanes;
  std::size_t events = 0;
  std::int64_t first_ns = INT64_MAX;
  for (const TraceLane& lane : picture.lanes) {
    if (lane.spans.empty() && lane.values.empty()) continue;
    lanes.push_back(&lane);
    events += lane.spans.size();
    for (const TraceSpan& span : lane.spans) first_ns = std::min(first_ns, span.begin_ns);
  }
  if (lanes.empty()) return {.html = {}, .text = "The trace holds nothing."};
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](const TraceLane* a, const TraceLane* b) { return a->group < b->group; });
  const std::size_t left_out = drop_worker_lanes(lanes, limits.worker_lanes);
  const Window window = last_stretch(lanes, limits);

  Drawing drawing(picture, window);
  std::size_t shown = 0;
  std::size_t group = SIZE_MAX;
  for (const TraceLane* lane : lanes) {
    if (lane->group != group) drawing.add_group(group = lane->group);
    drawing.add_lane(*lane);
    shown += static_cast<std::size_t>(std::count_if(
        lane->spans.begin(), lane->spans.end(), [&](auto& span) { return window.shows(span); }));
  }
  std::string text =
      shown == events
          ? fmt::format("All {} spans of {}.", events,
                        seconds_text(window.end_ns - window.begin_ns))
          : fmt::format(
                "The last {} of {}: {} of {} spans.", seconds_text(window.end_ns - window.begin_ns),
                seconds_text(window.end_ns - std::min(first_ns, window.begin_ns)), shown, events);
  if (left_out > 0)
    text +=
        fmt::format(" {} further worker{} not drawn.", left_out, left_out == 1 ? " is" : "s are");
  if (picture.dropped > 0)
    text +=
        fmt::format(" {} further spans and values did not fit into the trace.", picture.dropped);
  std::string html = drawing.html();
  if (shown < events || left_out > 0)
    html +=
        "<p class=\"how\">The whole trace is what <code>bench --trace FILE</code> writes, for "
        "trace viewers such as "
        "Perfetto.</p>\n";
  return {.html = html, .text = text};
}

}  // namespace millrace::cli
