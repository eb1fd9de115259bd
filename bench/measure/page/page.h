// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// One of the few numbers at the top of a page. All texts of a page are plain text; `page_html`
/// escapes them.
struct KeyNumber {
  std::string name;
  std::string value;
  std::string unit{};
  /// A line in small print.
  std::string detail{};
};

/// A table. Its first column names the row. The last `text_columns` columns hold texts, those
/// between hold numbers.
struct Table {
  std::string title{};
  /// Empty for a table of names and values.
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
  std::size_t text_columns = 0;
  /// Whether the chart above shows the same data. After drawing the chart, the script collapses
  /// such a table; without the script the table replaces the chart.
  bool repeats_chart = false;
};

/// A chart that page.js draws in the browser. The data of each kind is an object:
///
/// bars: a bar per stage, {rows: [{name, note, busy, waits_input, waits_output}]}, the last three
///     as shares of the stage's time, 0 to 1. If the last row is the trainer or the device, its
///     wait for input is the time that the run loses.
/// shares: the parts of a whole, {rows: [{name, note, from, share, lost}]}: a bar that begins at
///     `from`. Both numbers are 0 to 1; a lost part is red.
/// timeline: the spans of each lane over time; `timeline_section` makes it.
/// histogram: {x, y: titles of the axes, bins: [[from, to, count, text, total]], marks: [[x,
///     label]]}. x and the total (the bar's height) are in milliseconds; the x axis is logarithmic.
///     The first word of a mark's label is drawn at its line.
/// lines: {x, y: titles of the axes, whole_x: true if x has whole numbers only, series: [{name,
///     style, points: [[x, y]], error: [number], texts: [string], chosen: index, label}]}. The
///     style "points" draws points with error bars from y - error to y + error, and a tooltip with
///     the point's text. At most one point is chosen; it gets the label. The styles "fit",
///     "reference" and "needed" draw a line through their points. The scale follows the series
///     "points" and "needed"; other lines are clipped. A series without points appears only in the
///     legend.
struct Chart {
  std::string kind{};
  /// JSON.
  std::string data{};
};

/// Makes a chart from its data. Bytes that are not UTF-8 become U+FFFD.
Chart make_chart(std::string kind, const nlohmann::ordered_json& data);

/// A part of a page with a heading: a chart, then tables and a list, then a collapsed text.
struct Section {
  std::string title{};
  /// A sentence or two on how to read it.
  std::string text{};
  std::optional<Chart> chart{};
  /// Tables of names and values are placed side by side if space permits.
  std::vector<Table> tables{};
  std::vector<std::string> list{};
  /// Printed unchanged under the title `folded_title`; empty = no such text.
  std::string folded_title{};
  std::string folded{};
};

/// The contents of a page.
struct Page {
  std::string title{};
  /// The subject of the page, in small print above the verdict.
  std::string subject{};
  /// The main result, in words.
  std::string verdict{};
  /// The next step to take.
  std::string advice{};
  std::vector<std::string> warnings{};
  std::vector<KeyNumber> numbers{};
  std::vector<Section> sections{};
};

/// Returns the page as one self-contained file. It needs no network; verdict and tables need no
/// script. Its theme follows the reader's system.
std::string page_html(const Page& page);

/// Escapes a text for HTML elements and quoted attributes. Control characters become U+FFFD, and
/// bytes that are not UTF-8 are written as "\xe9".
std::string escape(std::string_view text);

/// A duration for people, with about three digits and a suitable unit: "0", "412 µs", "12.3 ms",
/// "1.25 s".
std::string duration_text(double milliseconds);

}  // namespace millrace::cli
