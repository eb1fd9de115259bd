// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// A scale of values with its marks.
struct ChartAxis {
  struct Tick {
    double value = 0;
    std::string label;
  };

  double low = 0;
  double high = 1;
  bool logarithmic = false;
  /// With the unit.
  std::string title{};
  std::vector<Tick> ticks{};

  /// Where a value lies: 0 at `low`, 1 at `high`; beyond where it is outside.
  double at(double value) const;
};

/// From `low` to `high` or a little over, with at most about `most_ticks` round marks.
ChartAxis linear_axis(std::string title, double low, double high, int most_ticks);

/// Round marks within a range: 1, 2 or 5 times a power of ten apart.
std::vector<double> round_marks(double low, double high, int most);

/// Decimals that tell marks apart which are `step` apart.
int decimals_for(double step);

/// A part of a bar that stands for the whole.
struct BarPart {
  /// CSS class of its fill.
  std::string style;
  /// 0 to 1.
  double share = 0;
  /// Said when pointed at.
  std::string detail;
};

/// A bar from 0 to 100% with parts one after the other; `title` is read out in its place.
std::string stacked_bar(const std::string& title, const std::vector<BarPart>& parts);

/// A chart of x over y, as wide as its place. Texts are plain; styles are CSS classes.
class SvgChart {
 public:
  /// `description` says in words what is to be seen, for those who cannot.
  SvgChart(std::string title, std::string description, ChartAxis x, ChartAxis y);

  void add_bar(double from_x, double to_x, double y, const char* style, const std::string& detail);
  /// A line through points; what lies outside is cut off.
  void add_line(const std::vector<std::pair<double, double>>& points, const char* style);
  /// A point and, where `error` > 0, a bar from y - error to y + error.
  void add_point(double x, double y, double error, const char* style, const std::string& detail);
  /// An upright line with a text; the texts of further ones come below each other.
  void add_marker(double x, const std::string& label, const char* style);
  /// A text next to a point, on the side where there is room.
  void add_label(double x, double y, const std::string& label);

  std::string svg() const;

 private:
  double y_at(double value) const;

  std::string title_;
  std::string description_;
  ChartAxis x_;
  ChartAxis y_;
  std::string marks_;
  /// Over all marks.
  std::string labels_;
  int markers_ = 0;
};

}  // namespace millrace::cli
