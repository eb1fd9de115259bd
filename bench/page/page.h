// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// One of the few numbers at the top of a page. All texts of a page are plain: `page_html` escapes
/// them.
struct KeyNumber {
  std::string name;
  std::string value;
  std::string unit{};
  /// A line in small print.
  std::string detail{};
};

/// A table. Its first column names the row, the last `text_columns` hold texts, and those between
/// hold numbers.
struct Table {
  std::string title{};
  /// Empty for a table of names and values, which needs no head.
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
  std::size_t text_columns = 0;
  /// Whether the chart above says the same. The script folds such a table after it has drawn the
  /// chart; without the script the table stands in the chart's place.
  bool repeats_chart = false;
};

/// A picture that page.js draws in the reader's browser. The data of each kind is an object:
///
/// bars: a bar per stage, {rows: [{name, note, busy, waits_input, waits_output}]}, the last three
///     as shares of the stage's time from 0 to 1. What the last row waits for input is what the run
///     loses, if that is the trainer or the device.
/// shares: the parts of a whole, {rows: [{name, note, from, share, lost}]}: a bar from `from` on,
///     both from 0 to 1, red if that part is lost.
/// timeline: what each lane did when; `timeline_section` makes it.
/// histogram: {x, y: titles of the axes, bins: [[from, to, count, text, total]], marks: [[x,
///     label]]}; x and the total, which is the bar's height, are in milliseconds, and the axis of x
///     is logarithmic. A mark's first word stands at its line.
/// lines: {x, y: titles of the axes, whole_x: true if x has whole numbers only, series: [{name,
///     style, points: [[x, y]], error: [number], texts: [string], chosen: index, label}]}. The
///     style "points" draws points with error bars from y - error to y + error and says a point's
///     text when it is pointed at; one point may be chosen and get the label. The styles "fit",
///     "reference" and "needed" draw a line through their points. The scale follows the series
///     "points" and "needed"; other lines are cut off. A series without points stands in the legend
///     alone.
struct Chart {
  std::string kind{};
  /// JSON.
  std::string data{};
};

/// A chart from its data. Bytes that are no UTF-8 become U+FFFD.
Chart make_chart(std::string kind, const nlohmann::ordered_json& data);

/// A part of a page under a heading of its own: its chart, then its tables and its list, then a
/// text that is folded.
struct Section {
  std::string title{};
  /// A sentence or two that say how to read it.
  std::string text{};
  std::optional<Chart> chart{};
  /// Tables of names and values stand beside each other if there is room.
  std::vector<Table> tables{};
  std::vector<std::string> list{};
  /// Printed as it is under the title `folded_title`; empty if there is nothing to fold.
  std::string folded_title{};
  std::string folded{};
};

/// All that a page shows.
struct Page {
  std::string title{};
  /// What the page is about, in small print above the verdict.
  std::string subject{};
  /// What to know first, in words.
  std::string verdict{};
  /// What to do next.
  std::string advice{};
  std::vector<std::string> warnings{};
  std::vector<KeyNumber> numbers{};
  std::vector<Section> sections{};
};

/// The page as one file that needs nothing else: no network, and no script for the verdict and the
/// tables. It is light or dark as the reader's system is.
std::string page_html(const Page& page);

/// A text as HTML shows it as it is, within elements and quoted attributes. Control characters
/// become U+FFFD, and bytes that are not UTF-8 are written as "\xe9".
std::string escape(std::string_view text);

/// A duration for people, with three digits or so and the unit that fits: "0", "412 µs", "12.3 ms",
/// "1.25 s".
std::string duration_text(double milliseconds);

}  // namespace millrace::cli
