// SPDX-License-Identifier: Apache-2.0
#include "page/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/html_page.h"

namespace millrace::cli {
namespace {

// An SVG here is as large as the plot itself and texts hang over its edges into a margin that
// page.css leaves: so x can be told in percent, and a chart fits any width without its texts being
// scaled.
constexpr double height = 240;
constexpr double line_units = 1000;

std::string percent(double share) { return fmt::format("{:.3f}%", 100 * share); }

}  // namespace

double ChartAxis::at(double value) const {
  if (logarithmic)
    return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  return (value - low) / (high - low);
}

std::vector<double> round_marks(double low, double high, int most) {
  if (!(high > low) || most < 1) return {low};
  const double least_step = (high - low) / most;
  const double power = std::pow(10.0, std::floor(std::log10(least_step)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= least_step * (1 - 1e-9)) step = factor * power;
  std::vector<double> marks;
  const double first = std::ceil(low / step - 1e-9);
  for (double mark = first; mark * step <= high + 1e-9 * step; mark += 1)
    marks.push_back(mark * step + 0.0);  // no -0
  return marks;
}

int decimals_for(double step) {
  if (!(step > 0)) return 0;
  return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
}

ChartAxis linear_axis(std::string title, double low, double high, int most_ticks) {
  if (!(high > low)) high = low + 1;
  ChartAxis axis{.low = low, .high = high, .title = std::move(title)};
  const std::vector<double> marks = round_marks(low, high, most_ticks);
  const double step = marks.size() > 1 ? marks[1] - marks[0] : high - low;
  for (const double mark : marks)
    axis.ticks.push_back({mark, fmt::format("{:.{}f}", mark, decimals_for(step))});
  return axis;
}

std::string stacked_bar(const std::string& title, const std::vector<BarPart>& parts) {
  std::string svg = fmt::format(
      "<svg class=\"bar\" width=\"100%\" height=\"22\" role=\"img\" aria-label=\"{}\"><rect "
      "class=\"track\" width=\"100%\" "
      "height=\"22\"/>",
      escape(title));
  double from = 0;
  for (const BarPart& part : parts) {
    const double share = std::clamp(part.share, 0.0, 1 - from);
    if (share <= 0) continue;
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{}\" width=\"{}\" height=\"22\"><title>{}</title></rect>",
        part.style, percent(from), percent(share), escape(part.detail));
    from += share;
  }
  return svg + "</svg>\n";
}

SvgChart::SvgChart(std::string title, std::string description, ChartAxis x, ChartAxis y)
    : title_(std::move(title)),
      description_(std::move(description)),
      x_(std::move(x)),
      y_(std::move(y)) {}

double SvgChart::y_at(double value) const { return height * (1 - y_.at(value)); }

void SvgChart::add_bar(double from_x, double to_x, double y, const char* style,
                       const std::string& detail) {
  const double top = y_at(y);
  marks_ += fmt::format(
      "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" "
      "height=\"{:.1f}\"><title>{}</title></rect>\n",
      style, percent(x_.at(from_x)), top, percent(x_.at(to_x) - x_.at(from_x)), height - top,
      escape(detail));
}

void SvgChart::add_line(const std::vector<std::pair<double, double>>& points, const char* style) {
  std::string path;
  for (const auto& [x, y] : points)
    path +=
        fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', line_units * x_.at(x), y_at(y));
  marks_ += fmt::format(
      "<svg width=\"100%\" height=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\"><path "
      "class=\"{}\" "
      "d=\"{}\"/></svg>\n",
      height, line_units, height, style, path);
}

void SvgChart::add_point(double x, double y, double error, const char* style,
                         const std::string& detail) {
  const std::string at = percent(x_.at(x));
  marks_ += fmt::format("<g class=\"{}\"><title>{}</title>", style, escape(detail));
  if (error > 0) {
    const double top = y_at(y + error);
    const double bottom = y_at(y - error);
    marks_ +=
        fmt::format("<line x1=\"{0}\" x2=\"{0}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>", at, top, bottom);
    for (const double end : {top, bottom})
      marks_ +=
          fmt::format("<svg x=\"{0}\" y=\"{1:.1f}\"><line x1=\"-4\" x2=\"4\"/></svg>", at, end);
  }
  // The wide one is only there to be pointed at.
  marks_ += fmt::format(
      "<circle cx=\"{0}\" cy=\"{1:.1f}\" r=\"4\"/><circle class=\"target\" cx=\"{0}\" "
      "cy=\"{1:.1f}\" r=\"12\"/></g>\n",
      at, y_at(y));
}

void SvgChart::add_marker(double x, const std::string& label, const char* style) {
  const double share = x_.at(x);
  const bool to_the_left = share > 0.7;
  const double y = 12 + 15 * markers_++;
  marks_ += fmt::format("<line class=\"marker {0}\" x1=\"{1}\" x2=\"{1}\" y1=\"0\" y2=\"{2}\"/>\n",
                        style, percent(share), height);
  labels_ += fmt::format("<text class=\"marker {}\" x=\"{}\" dx=\"{}\" y=\"{}\"{}>{}</text>\n",
                         style, percent(share), to_the_left ? -5 : 5, y,
                         to_the_left ? " text-anchor=\"end\"" : "", escape(label));
}

void SvgChart::add_label(double x, double y, const std::string& label) {
  const double share = x_.at(x);
  const bool to_the_left = share > 0.6;
  labels_ += fmt::format("<text class=\"label\" x=\"{}\" dx=\"{}\" y=\"{:.1f}\"{}>{}</text>\n",
                         percent(share), to_the_left ? -10 : 10, y_at(y) + 22,
                         to_the_left ? " text-anchor=\"end\"" : "", escape(label));
}

std::string SvgChart::svg() const {
  std::string svg = fmt::format(
      "<div class=\"chart\"><svg width=\"100%\" height=\"{}\" role=\"img\" "
      "aria-label=\"{}\"><title>{}</title><desc>{}</desc>\n",
      height, escape(title_), escape(title_), escape(description_));
  for (const ChartAxis::Tick& tick : y_.ticks)
    svg += fmt::format(
        "<line class=\"rule\" x1=\"0\" x2=\"100%\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/><text "
        "class=\"tick\" x=\"-8\" y=\"{0:.1f}\" "
        "dy=\"4\" "
        "text-anchor=\"end\">{1}</text>\n",
        y_at(tick.value), escape(tick.label));
  for (const ChartAxis::Tick& tick : x_.ticks)
    svg += fmt::format(
        "<line class=\"tick\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"tick\" "
        "x=\"{0}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        percent(x_.at(tick.value)), height, height + 5, height + 18, escape(tick.label));
  svg += fmt::format("<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"{0}\" y2=\"{0}\"/>\n", height);
  svg += marks_ + labels_;
  svg +=
      fmt::format("<text class=\"axis-title\" x=\"-52\" y=\"-14\">{}</text>\n", escape(y_.title));
  svg +=
      fmt::format("<text class=\"axis-title\" x=\"100%\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                  height + 38, escape(x_.title));
  return svg + "</svg></div>\n";
}

}  // namespace millrace::cli
