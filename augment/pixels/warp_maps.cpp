// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <system_error>
#include <utility>

#include "pixels/warp.h"

namespace millrace {
namespace {

double radians(double degrees) { return degrees * (std::numbers::pi / 180); }

/// Rounds to 15 digits after the point, as Python's `round(value, 15)` does: the result is the
/// number nearest to the decimal one.
double rounded_15(double value) {
  char digits[32];  // of a number from -1 to 1
  const auto written =
      std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::fixed, 15);
  double read = value;
  std::from_chars(std::begin(digits), written.ptr, read);
  return read;
}

/// Returns Python's `degrees % 360`.
double in_one_turn(double degrees) {
  const double rest = std::fmod(degrees, 360);
  return rest < 0 ? rest + 360 : rest;
}

/// Copies each pixel to the position that `mapping(x, y)` returns.
template <typename Mapping>
void move_pixels(const std::uint8_t* image, Size size, std::uint8_t* made, Mapping mapping) {
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x, image += 3) {
      const auto [to_x, to_y] = mapping(x, y);
      std::memcpy(
          made + 3 * (static_cast<std::size_t>(to_y) * static_cast<std::size_t>(size.width) +
                      static_cast<std::size_t>(to_x)),
          image, 3);
    }
}

/// Returns whether three points lie on one line. Exact for whole numbers, which the corners are.
bool aligned(Point a, Point b, Point c) {
  return (b.x - a.x) * (c.y - a.y) == (b.y - a.y) * (c.x - a.x);
}

/// Solves `equations` by Gauss-Jordan elimination. Each row has 8 factors and their sum.
std::optional<PerspectiveMap> solved(std::array<std::array<double, 9>, 8> equations) {
  constexpr std::size_t unknowns = 8;
  for (std::size_t at = 0; at < unknowns; ++at) {
    std::size_t largest = at;
    for (std::size_t row = at; row < unknowns; ++row)
      if (std::abs(equations[row][at]) > std::abs(equations[largest][at])) largest = row;
    std::swap(equations[at], equations[largest]);
    if (equations[at][at] == 0) return std::nullopt;
    for (std::size_t row = 0; row < unknowns; ++row) {
      if (row == at) continue;
      const double share = equations[row][at] / equations[at][at];
      for (std::size_t column = at; column <= unknowns; ++column)
        equations[row][column] -= share * equations[at][column];
    }
  }
  PerspectiveMap map{};
  for (std::size_t n = 0; n < unknowns; ++n)
    map[n] = static_cast<float>(equations[n][unknowns] / equations[n][n]);
  return map;
}

}  // namespace

AffineMap affine_map(Point centre, double degrees, Point translation, double scale, Point shear) {
  const double turn = radians(degrees);
  const double along_x = radians(shear.x);
  const double along_y = radians(shear.y);
  // Matrix of the map from image to output, without the scale. Its determinant is 1.
  const double a = std::cos(turn - along_y) / std::cos(along_y);
  const double b =
      -std::cos(turn - along_y) * std::tan(along_x) / std::cos(along_y) - std::sin(turn);
  const double c = std::sin(turn - along_y) / std::cos(along_y);
  const double d =
      -std::sin(turn - along_y) * std::tan(along_x) / std::cos(along_y) + std::cos(turn);

  AffineMap back{d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  const double x = -centre.x - translation.x;
  const double y = -centre.y - translation.y;
  back[2] += back[0] * x + back[1] * y;
  back[5] += back[3] * x + back[4] * y;
  back[2] += centre.x;
  back[5] += centre.y;
  return back;
}

std::optional<PerspectiveMap> perspective_map(Size size, const std::array<Point, 4>& corners) {
  const double right = size.width - 1;
  const double bottom = size.height - 1;
  bool flat = right == 0 || bottom == 0;
  for (std::size_t n = 0; n < 4; ++n)
    flat = flat || aligned(corners[n], corners[(n + 1) % 4], corners[(n + 2) % 4]);
  if (flat) return std::nullopt;
  const Point from[] = {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
  std::array<std::array<double, 9>, 8> equations{};
  for (std::size_t n = 0; n < 4; ++n) {
    const Point to = corners[n];
    equations[2 * n] = {to.x, to.y, 1, 0, 0, 0, -from[n].x * to.x, -from[n].x * to.y, from[n].x};
    equations[2 * n + 1] = {0,        0, 0, to.x, to.y, 1, -from[n].y * to.x, -from[n].y * to.y,
                            from[n].y};
  }
  return solved(equations);
}

void rotate(const std::uint8_t* image, Size size, double degrees, Interpolation interpolation,
            Colour fill, std::uint8_t* made) {
  const double angle = in_one_turn(degrees);
  const int right = size.width - 1;
  const int bottom = size.height - 1;
  using Coordinates = std::pair<int, int>;
  if (angle == 0)
    return move_pixels(image, size, made, [](int x, int y) { return Coordinates(x, y); });
  if (angle == 180)
    return move_pixels(image, size, made,
                       [&](int x, int y) { return Coordinates(right - x, bottom - y); });
  if (angle == 90 && right == bottom)
    return move_pixels(image, size, made, [&](int x, int y) { return Coordinates(y, right - x); });
  if (angle == 270 && right == bottom)
    return move_pixels(image, size, made, [&](int x, int y) { return Coordinates(bottom - y, x); });

  const double turn = -radians(angle);
  const double cosine = rounded_15(std::cos(turn));
  const double sine = rounded_15(std::sin(turn));
  const Point centre{size.width / 2.0, size.height / 2.0};
  AffineMap map{cosine, sine, 0, -sine, cosine, 0};
  map[2] = cosine * -centre.x + sine * -centre.y + centre.x;
  map[5] = -sine * -centre.x + cosine * -centre.y + centre.y;
  warp(image, size, map, interpolation, fill, made);
}

}  // namespace millrace
