// SPDX-License-Identifier: Apache-2.0
#include "pixels/warp.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

namespace millrace {
namespace {

constexpr std::size_t rgb = 3;  // the bytes of a pixel

struct WarpedImage {
  const std::uint8_t* pixels;
  int width;
  int height;
  std::size_t stride;

  WarpedImage(const std::uint8_t* image, Size size)
      : pixels(image),
        width(size.width),
        height(size.height),
        stride(static_cast<std::size_t>(size.width) * rgb) {}

  bool holds(double x, double y) const { return x >= 0 && x < width && y >= 0 && y < height; }
  const std::uint8_t* row(int y) const {
    return pixels + static_cast<std::size_t>(std::clamp(y, 0, height - 1)) * stride;
  }
  std::size_t column(int x) const {
    return static_cast<std::size_t>(std::clamp(x, 0, width - 1)) * rgb;
  }
  /// Returns the pixel at a place inside the image.
  const std::uint8_t* nearest(int x, int y) const {
    return pixels + static_cast<std::size_t>(y) * stride + static_cast<std::size_t>(x) * rgb;
  }
};

std::array<std::uint8_t, 3> bytes_of(Colour colour) {
  return {static_cast<std::uint8_t>(colour.red), static_cast<std::uint8_t>(colour.green),
          static_cast<std::uint8_t>(colour.blue)};
}

void put(std::uint8_t* to, const std::uint8_t* pixel) { std::memcpy(to, pixel, rgb); }

void put_many(std::uint8_t* to, int count, const std::array<std::uint8_t, 3>& pixel) {
  for (int n = 0; n < count; ++n, to += rgb) put(to, pixel.data());
}

/// The four pixel centres around a position. `x` and `y` are the upper left pixel; `right` and
/// `down` are the distances from its centre.
struct Between {
  int x;
  int y;
  double right;
  double down;

  Between(double place_x, double place_y) {
    place_x -= 0.5;
    place_y -= 0.5;
    x = place_x < 0 ? -1 : static_cast<int>(place_x);
    y = place_y < 0 ? -1 : static_cast<int>(place_y);
    right = place_x - x;
    down = place_y - y;
  }
};

struct NearestFilter {
  /// Whether a source position that is NaN gives black.
  static constexpr bool black_without_place = false;

  void operator()(const WarpedImage& image, double x, double y, std::uint8_t* made) const {
    put(made, image.nearest(static_cast<int>(x), static_cast<int>(y)));
  }
};

struct BilinearFilter {
  static constexpr bool black_without_place = true;

  static double mixed(double a, double b, double share) { return a + (b - a) * share; }

  void operator()(const WarpedImage& image, double x, double y, std::uint8_t* made) const {
    const Between at(x, y);
    const std::uint8_t* upper = image.row(at.y);
    const std::uint8_t* lower = image.row(at.y + 1);
    const std::size_t left = image.column(at.x);
    const std::size_t right = image.column(at.x + 1);
    for (std::size_t channel = 0; channel < rgb; ++channel) {
      const double above = mixed(upper[left + channel], upper[right + channel], at.right);
      const double below = mixed(lower[left + channel], lower[right + channel], at.right);
      made[channel] = static_cast<std::uint8_t>(mixed(above, below, at.down));
    }
  }
};

/// Cubic convolution with a = -1.
struct BicubicFilter {
  static constexpr bool black_without_place = true;

  static double mixed(double a, double b, double c, double d, double share) {
    const double first = -a + c;
    const double second = 2 * (a - b) + c - d;
    const double third = -a + b - c + d;
    return b + share * (first + share * (second + share * third));
  }

  void operator()(const WarpedImage& image, double x, double y, std::uint8_t* made) const {
    const Between at(x, y);
    const std::uint8_t* rows[4];
    std::size_t columns[4];
    for (int n = 0; n < 4; ++n) {
      rows[n] = image.row(at.y - 1 + n);
      columns[n] = image.column(at.x - 1 + n);
    }
    for (std::size_t channel = 0; channel < rgb; ++channel) {
      double of_row[4];
      for (int n = 0; n < 4; ++n) {
        const std::uint8_t* row = rows[n] + channel;
        of_row[n] =
            mixed(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]], at.right);
      }
      const double value = mixed(of_row[0], of_row[1], of_row[2], of_row[3], at.down);
      made[channel] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
};

struct AffineSources {
  const AffineMap& m;
  Point operator()(double x, double y) const {
    return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
  }
};

struct PerspectiveSources {
  const PerspectiveMap& m;
  Point operator()(double x, double y) const {
    const double by = m[6] * x + m[7] * y + 1;
    return {(m[0] * x + m[1] * y + m[2]) / by, (m[3] * x + m[4] * y + m[5]) / by};
  }
};

template <typename Places, typename Filter>
void warp_each(const WarpedImage& image, const Places& places, const Filter& filter, Colour fill,
               std::uint8_t* made) {
  const auto outside = bytes_of(fill);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x, made += rgb) {
      const Point place = places(x + 0.5, y + 0.5);
      if (image.holds(place.x, place.y)) {
        filter(image, place.x, place.y, made);
        continue;
      }
      // In Pillow a comparison with NaN is false, so a position that is NaN counts as inside. The
      // conversion of the filter's result to 8 bits gives 0.
      const bool found_outside =
          place.x < 0 || place.x >= image.width || place.y < 0 || place.y >= image.height;
      if (Filter::black_without_place && !found_outside)
        std::memset(made, 0, rgb);
      else
        put(made, outside.data());
    }
}

template <typename Places>
void warp_filtered(const WarpedImage& image, const Places& places, Interpolation interpolation,
                   Colour fill, std::uint8_t* made) {
  if (interpolation == Interpolation::bilinear)
    warp_each(image, places, BilinearFilter{}, fill, made);
  else if (interpolation == Interpolation::bicubic)
    warp_each(image, places, BicubicFilter{}, fill, made);
  else
    warp_each(image, places, NearestFilter{}, fill, made);
}

/// Returns the source pixel of each of `count` pixels along one axis; -1 outside. Adds up the step
/// as Pillow does, so that rounding errors are the same.
std::vector<int> scaled_places(int count, double step, double offset) {
  std::vector<int> places(static_cast<std::size_t>(count), -1);
  double place = offset + step * 0.5;
  for (int& one : places) {
    if (place >= 0 && place < count) one = static_cast<int>(place);
    place += step;
  }
  return places;
}

/// Warps by a map that only scales and moves each axis.
void scale_nearest(const WarpedImage& image, const AffineMap& m, Colour fill, std::uint8_t* made) {
  const auto outside = bytes_of(fill);
  const std::vector<int> columns = scaled_places(image.width, m[0], m[2]);
  for (const int y : scaled_places(image.height, m[4], m[5]))
    for (const int x : columns) {
      put(made, x < 0 || y < 0 ? outside.data() : image.nearest(x, y));
      made += rgb;
    }
}

constexpr int fraction_bits = 16;

/// Returns whether fixed-point numbers with 16 bits before and 16 after the point can hold all
/// source positions.
bool fits_fixed(const AffineMap& m, int width, int height) {
  constexpr double limit = 32768;
  const AffineSources places{m};
  for (const int x : {0, width})
    for (const int y : {0, height}) {
      const Point place = places(x, y);
      if (!(std::abs(place.x) < limit && std::abs(place.y) < limit)) return false;
    }
  return true;
}

/// The consecutive numbers n in 0 .. `count` - 1 for which 0 <= start + n x step < end.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

Span inside(std::int64_t start, std::int64_t step, std::int64_t end, std::int64_t count) {
  if (step == 0) return start >= 0 && start < end ? Span{0, count} : Span{0, 0};
  if (step < 0) {  // mirrors the axis, so that the step is positive
    start = end - 1 - start;
    step = -step;
  }
  const auto steps_to = [&](std::int64_t place) {
    return place <= start ? 0 : (place - start + step - 1) / step;
  };
  return {std::min(steps_to(0), count), std::min(steps_to(end), count)};
}

void warp_fixed(const WarpedImage& image, const AffineMap& m, Colour fill, std::uint8_t* made) {
  const auto fixed = [](double value) {
    return static_cast<std::int64_t>(std::floor(value * (1 << fraction_bits) + 0.5));
  };
  const std::int64_t step_x = fixed(m[0]);
  const std::int64_t step_y = fixed(m[3]);
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const auto outside = bytes_of(fill);
  for (int y = 0; y < image.height; ++y) {
    const auto limit = [](int side) { return std::int64_t{side} << fraction_bits; };
    const Span across = inside(row_x, step_x, limit(image.width), image.width);
    const Span down = inside(row_y, step_y, limit(image.height), image.width);
    const std::int64_t begin = std::max(across.begin, down.begin);
    const std::int64_t end = std::max(begin, std::min(across.end, down.end));
    put_many(made, static_cast<int>(begin), outside);
    made += static_cast<std::size_t>(begin) * rgb;
    std::int64_t place_x = row_x + begin * step_x;
    std::int64_t place_y = row_y + begin * step_y;
    for (std::int64_t x = begin; x < end; ++x, made += rgb) {
      put(made, image.nearest(static_cast<int>(place_x >> fraction_bits),
                              static_cast<int>(place_y >> fraction_bits)));
      place_x += step_x;
      place_y += step_y;
    }
    put_many(made, image.width - static_cast<int>(end), outside);
    made += static_cast<std::size_t>(image.width - end) * rgb;
    row_x += fixed(m[1]);
    row_y += fixed(m[4]);
  }
}

/// Warps by a map whose source positions are too far away for `warp_fixed`. Adds up the steps as
/// Pillow does.
void warp_summed(const WarpedImage& image, const AffineMap& m, Colour fill, std::uint8_t* made) {
  const auto outside = bytes_of(fill);
  Point row{m[2] + m[1] * 0.5 + m[0] * 0.5, m[5] + m[4] * 0.5 + m[3] * 0.5};
  for (int y = 0; y < image.height; ++y) {
    Point place = row;
    for (int x = 0; x < image.width; ++x, made += rgb) {
      if (image.holds(place.x, place.y))
        NearestFilter{}(image, place.x, place.y, made);
      else
        put(made, outside.data());
      place.x += m[0];
      place.y += m[3];
    }
    row.x += m[1];
    row.y += m[4];
  }
}

}  // namespace

void warp(const std::uint8_t* image, Size size, const AffineMap& map, Interpolation interpolation,
          Colour fill, std::uint8_t* made) {
  const WarpedImage from(image, size);
  if (interpolation != Interpolation::nearest)
    warp_filtered(from, AffineSources{map}, interpolation, fill, made);
  else if (map[1] == 0 && map[3] == 0)
    scale_nearest(from, map, fill, made);
  else if (fits_fixed(map, size.width, size.height))
    warp_fixed(from, map, fill, made);
  else
    warp_summed(from, map, fill, made);
}

void warp(const std::uint8_t* image, Size size, const PerspectiveMap& map,
          Interpolation interpolation, Colour fill, std::uint8_t* made) {
  warp_filtered(WarpedImage(image, size), PerspectiveSources{map}, interpolation, fill, made);
}

}  // namespace millrace
