// SPDX-License-Identifier: Apache-2.0
#include "targets/placement.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace millrace {
namespace {

/// The part of one axis of the upright image that the output shows.
struct OutputAxis {
  int from;    // the box's length in pixels
  int offset;  // the box's first pixel
  int to;      // the length to which the box is resized
  int begin;   // the window's first pixel
  int count;   // the window's length
  int at;      // the window's place in the output
  int length;  // the output's length
  bool mirrored;
};

int nearest_source(int place, int from, int to) {
  if (from == to) return place;
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  return std::min(static_cast<int>(std::floor(static_cast<float>(place) * scale)), from - 1);
}

void find_axis(const OutputAxis& axis, std::span<const int> framed, int upright, bool turned_back,
               std::vector<int>& places) {
  places.resize(static_cast<std::size_t>(axis.length));
  for (int n = 0; n < axis.length; ++n) {
    int place = -1;
    if (!framed.empty()) {
      place = framed[static_cast<std::size_t>(n)];
    } else if (n >= axis.at && n < axis.at + axis.count) {
      const int in_window = axis.mirrored ? axis.at + axis.count - 1 - n : n - axis.at;
      place = axis.begin + in_window;
    }
    if (place >= 0) {
      place = axis.offset + nearest_source(place, axis.from, axis.to);
      if (turned_back) place = upright - 1 - place;
    }
    places[static_cast<std::size_t>(n)] = place;
  }
}

void clip(Box& box, Size size) {
  const auto width = static_cast<float>(size.width);
  const auto height = static_cast<float>(size.height);
  box.left = std::clamp(box.left, 0.0F, width);
  box.right = std::clamp(box.right, 0.0F, width);
  box.top = std::clamp(box.top, 0.0F, height);
  box.bottom = std::clamp(box.bottom, 0.0F, height);
}

void move(Box& box, int x, int y) {
  box.left += static_cast<float>(x);
  box.right += static_cast<float>(x);
  box.top += static_cast<float>(y);
  box.bottom += static_cast<float>(y);
}

void mirror(Box& box, int width) {
  const float left = box.left;
  box.left = static_cast<float>(width) - box.right;
  box.right = static_cast<float>(width) - left;
}

void flip(Box& box, int height) {
  const float top = box.top;
  box.top = static_cast<float>(height) - box.bottom;
  box.bottom = static_cast<float>(height) - top;
}

struct Ratios {
  explicit Ratios(const Resampling& resampling)
      : across(
            static_cast<float>(static_cast<double>(resampling.to.width) / resampling.from.width)),
        down(static_cast<float>(static_cast<double>(resampling.to.height) /
                                resampling.from.height)) {}
  float across;
  float down;
};

/// Makes the inverse, up to a factor, of a matrix that multiplies homogeneous coordinates.
void invert(const double (&map)[3][3], double (&inverse)[3][3]) {
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 3; ++column) {
      const int a = (column + 1) % 3;
      const int b = (column + 2) % 3;
      const int c = (row + 1) % 3;
      const int d = (row + 2) % 3;
      inverse[row][column] = map[a][c] * map[b][d] - map[a][d] * map[b][c];
    }
}

}  // namespace

void NearestSources::find(const ResamplePlan& plan) {
  const Resampling& resampling = plan.resampling;
  const Region& window = resampling.window;
  const Turn turn = resampling.turn;
  const PaddingMap& padding_map = plan.padding_map;
  find_axis({resampling.from.width, plan.box.x, resampling.to.width, window.x, window.width, plan.x,
             plan.output.width, resampling.mirrored},
            padding_map.columns, plan.image.width, turn.mirrored, columns);
  find_axis({resampling.from.height, plan.box.y, resampling.to.height, window.y, window.height,
             plan.y, plan.output.height, resampling.flipped},
            padding_map.rows, plan.image.height, turn.flipped, rows);
  transposed = turn.transposed;
}

void place_boxes(const ResamplePlan& plan, std::span<Box> boxes) {
  const Resampling& resampling = plan.resampling;
  const Turn turn = resampling.turn;
  const Ratios ratios(resampling);
  for (Box& box : boxes) {
    if (turn.transposed) {
      std::swap(box.left, box.top);
      std::swap(box.right, box.bottom);
    }
    if (turn.mirrored) mirror(box, plan.image.width);
    if (turn.flipped) flip(box, plan.image.height);
    clip(box, plan.image);
    move(box, -plan.box.x, -plan.box.y);
    clip(box, resampling.from);
    box.left *= ratios.across;
    box.right *= ratios.across;
    box.top *= ratios.down;
    box.bottom *= ratios.down;
    for (const Border& border : plan.padding_map.borders)
      move(box, border.padding.left, border.padding.top);
    move(box, -plan.shown.left, -plan.shown.top);
    clip(box, plan.output);
    if (resampling.mirrored) mirror(box, plan.output.width);
    if (resampling.flipped) flip(box, plan.output.height);
  }
}

FloatPoint placed(const ResamplePlan& plan, FloatPoint point) {
  const Resampling& resampling = plan.resampling;
  const Turn turn = resampling.turn;
  const auto exchanged = [](float at, int side) { return static_cast<float>(side - 1) - at; };
  if (turn.transposed) std::swap(point.x, point.y);
  if (turn.mirrored) point.x = exchanged(point.x, plan.image.width);
  if (turn.flipped) point.y = exchanged(point.y, plan.image.height);
  point.x -= static_cast<float>(plan.box.x);
  point.y -= static_cast<float>(plan.box.y);
  const Ratios ratios(resampling);
  point.x *= ratios.across;
  point.y *= ratios.down;
  for (const Border& border : plan.padding_map.borders) {
    point.x += static_cast<float>(border.padding.left);
    point.y += static_cast<float>(border.padding.top);
  }
  point.x -= static_cast<float>(plan.shown.left);
  point.y -= static_cast<float>(plan.shown.top);
  if (resampling.mirrored) point.x = exchanged(point.x, plan.output.width);
  if (resampling.flipped) point.y = exchanged(point.y, plan.output.height);
  return point;
}

ForwardWarp::ForwardWarp(const AffineMap& map) {
  const double matrix[3][3] = {{map[0], map[1], map[2]}, {map[3], map[4], map[5]}, {0, 0, 1}};
  invert(matrix, rows_);
}

ForwardWarp::ForwardWarp(const PerspectiveMap& map) {
  const double matrix[3][3] = {
      {map[0], map[1], map[2]}, {map[3], map[4], map[5]}, {map[6], map[7], 1}};
  invert(matrix, rows_);
}

FloatPoint ForwardWarp::operator()(FloatPoint point) const {
  double made[3];
  for (int row = 0; row < 3; ++row)
    made[row] = rows_[row][0] * static_cast<double>(point.x) +
                rows_[row][1] * static_cast<double>(point.y) + rows_[row][2];
  return {static_cast<float>(made[0] / made[2]), static_cast<float>(made[1] / made[2])};
}

Box ForwardWarp::operator()(const Box& box, Size size) const {
  const FloatPoint corners[] = {(*this)({box.left, box.top}), (*this)({box.right, box.top}),
                                (*this)({box.right, box.bottom}), (*this)({box.left, box.bottom})};
  Box around{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const FloatPoint& corner : corners) {
    around.left = std::min(around.left, corner.x);
    around.right = std::max(around.right, corner.x);
    around.top = std::min(around.top, corner.y);
    around.bottom = std::max(around.bottom, corner.y);
  }
  clip(around, size);
  return around;
}

AffineMap rotation_map(Size size, double degrees) {
  return affine_map(middle(size), -degrees, {0, 0}, 1, {0, 0});
}

}  // namespace millrace
