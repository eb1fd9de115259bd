// SPDX-License-Identifier: Apache-2.0
#include "ops/padding_map.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace millrace {
namespace {

/// Returns the number at index `at` of a sequence that runs from 0 to `last` and back, again and
/// again. `repeat` is 1 if 0 and `last` appear twice in a row, otherwise 0.
int mirrored_place(int at, int last, int repeat) {
  const int period = 2 * last + 2 * repeat;
  if (period == 0) return 0;
  const int place = (at % period + period) % period;
  return place <= last ? place : period - repeat - place;
}

/// The borders along one axis.
struct AxisBorder {
  int before;
  int after;
  PaddingMode mode;
};

/// Returns the source of one column or row of a padded image, encoded as in `PaddingMap::columns`.
int source_place(const std::vector<AxisBorder>& borders, int inner, int at) {
  int length = inner;
  for (const AxisBorder& border : borders) length += border.before + border.after;
  if (at < 0 || at >= length) return -1;
  int colour = -2;
  for (auto border = borders.rbegin(); border != borders.rend(); ++border, --colour) {
    length -= border->before + border->after;
    at -= border->before;
    if (at >= 0 && at < length) continue;
    switch (border->mode) {
      case PaddingMode::constant:
        return colour;
      case PaddingMode::edge:
        at = std::clamp(at, 0, length - 1);
        break;
      case PaddingMode::reflect:
        at = mirrored_place(at, length - 1, 0);
        break;
      case PaddingMode::symmetric:
        at = mirrored_place(at, length - 1, 1);
        break;
    }
  }
  return at;
}

struct AxisView {
  std::vector<int> places;
  /// The shown source pixels: from `begin` to before `end`. If no pixel is shown, the first one
  /// counts as shown.
  int begin = 0;
  int end = 1;
  /// Position of pixel `begin` in the output; nullopt if the output lacks a pixel before `end`.
  std::optional<int> at{};
};

AxisView view_of(const std::vector<AxisBorder>& borders, int inner, int from, int count) {
  AxisView view{std::vector<int>(static_cast<std::size_t>(count))};
  int low = inner;
  int high = -1;
  for (int n = 0; n < count; ++n) {
    const int place = source_place(borders, inner, from + n);
    view.places[static_cast<std::size_t>(n)] = place;
    if (place < 0) continue;
    low = std::min(low, place);
    high = std::max(high, place);
  }
  if (high < 0) return view;
  view.begin = low;
  view.end = high + 1;
  int at = low - from;
  for (const AxisBorder& border : borders) at += border.before;
  if (at >= 0 && at + high + 1 - low <= count) view.at = at;
  return view;
}

std::array<std::uint8_t, 3> border_colour(const std::vector<Border>& borders, int place) {
  if (place == -1) return {0, 0, 0};
  const Colour colour = borders[borders.size() - static_cast<std::size_t>(-1 - place)].fill;
  return {static_cast<std::uint8_t>(colour.red), static_cast<std::uint8_t>(colour.green),
          static_cast<std::uint8_t>(colour.blue)};
}

}  // namespace

Size PaddingMap::outer(Size inner) const {
  for (const Border& border : borders) {
    inner.width += border.padding.left + border.padding.right;
    inner.height += border.padding.top + border.padding.bottom;
  }
  return inner;
}

void PaddingMap::show(const Region& region, Size inner) {
  std::vector<AxisBorder> across;
  std::vector<AxisBorder> down;
  for (const Border& border : borders) {
    across.push_back({border.padding.left, border.padding.right, border.mode});
    down.push_back({border.padding.top, border.padding.bottom, border.mode});
  }
  AxisView x = view_of(across, inner.width, region.x, region.width);
  AxisView y = view_of(down, inner.height, region.y, region.height);
  columns = std::move(x.places);
  rows = std::move(y.places);
  window_ = {
      {x.begin, y.begin, x.end - x.begin, y.end - y.begin}, x.at.value_or(0), y.at.value_or(0)};
  holds_window_ = x.at && y.at;
}

void PaddingMap::fill(const Resampling& resampling, const std::uint8_t* window, std::size_t stride,
                      std::uint8_t* output) const {
  const Region& region = resampling.window;
  const auto position = [](int place, int begin, int count, bool reversed) {
    return static_cast<std::size_t>(reversed ? begin + count - 1 - place : place - begin);
  };
  for (const int row : rows) {
    const std::uint8_t* from =
        row < 0 ? nullptr
                : window + position(row, region.y, region.height, resampling.flipped) * stride;
    for (std::size_t at = 0; at < columns.size();) {
      const int column = columns[at];
      std::size_t count = 1;
      if (row >= 0 && column >= 0) {
        const std::uint8_t* pixel =
            from + 3 * position(column, region.x, region.width, resampling.mirrored);
        if (pixel != output)
          std::memcpy(output, pixel, 3);
        else  // the window's row is already in place: skip it
          count = static_cast<std::size_t>(region.width);
      } else {
        const int place = row < 0 && column < 0 ? std::max(row, column) : std::min(row, column);
        std::memcpy(output, border_colour(borders, place).data(), 3);
      }
      output += 3 * count;
      at += count;
    }
  }
}

}  // namespace millrace
