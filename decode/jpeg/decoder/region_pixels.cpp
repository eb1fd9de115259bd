// SPDX-License-Identifier: Apache-2.0
#include "jpeg/decoder/region_pixels.h"

#include <algorithm>
#include <cstring>

#include "jpeg/colour.h"
#include "jpeg/upsample.h"

namespace millrace::jpeg {
namespace {

/// Index of the first sum in a row of sums. The sum of its left neighbour precedes it.
constexpr std::size_t first_sum = 32;

}  // namespace

std::size_t RegionPixels::stride_of(int width) {
  return (static_cast<std::size_t>(width) + row_slack - 1) / row_slack * row_slack * 3;
}

void RegionPixels::begin(const Frame& frame, const Region& region, int reduction,
                         std::uint8_t* pixels) {
  frame_ = &frame;
  next_row_ = pixels;
  lay_out(frame, reduction);
  window_ = window_of(region);
  shape(frame);
}

int RegionPixels::add(const CoefficientRow& coefficients, int mcu_row) {
  make_samples(coefficients);
  return add_samples(mcu_row);
}

int RegionPixels::add_samples(int mcu_row) {
  const int rows = make_pixels(mcu_row);
  keep_last_rows();
  return rows;
}

void RegionPixels::lay_out(const Frame& frame, int reduction) {
  const auto part = [](int pixels, int of) { return (pixels + of - 1) / of; };
  const Component& first = frame.components.front();
  const int side = block_side / reduction;
  grid_ = {.sides = {side, side, side},
           .mcu_width = side * first.across,
           .mcu_height = side * first.down,
           .across = first.across,
           .down = first.down};
  // For 4:2:0, chroma decoded at twice the resolution needs no smoothing.
  if (reduction > 1 && first.across == 2 && first.down == 2) {
    grid_.sides[1] = grid_.sides[2] = 2 * side;
    grid_.across = grid_.down = 1;
  }
  grid_.chroma_width = part(part(frame.width, reduction), grid_.across);
  grid_.chroma_height = part(part(frame.height, reduction), grid_.down);
}

/// Returns the MCUs that contain a region. Where chroma is smoothed, also returns the MCUs that
/// contain the neighbouring samples of chroma.
McuWindow RegionPixels::window_of(const Region& region) const {
  const auto range = [](int begin, int size, int factor, int image_size, int mcu_size, int& first,
                        int& last) {
    const int beside = factor > 1 ? 1 : 0;
    const int from = std::max(begin / factor - beside, 0);
    const int to = std::min((begin + size - 1) / factor + beside, image_size - 1);
    first = from * factor / mcu_size;
    last = to * factor / mcu_size;
  };
  McuWindow window{region};
  range(region.x, region.width, grid_.across, grid_.chroma_width, grid_.mcu_width, window.first_mcu,
        window.last_mcu);
  range(region.y, region.height, grid_.down, grid_.chroma_height, grid_.mcu_height,
        window.first_mcu_row, window.last_mcu_row);
  return window;
}

void RegionPixels::shape(const Frame& frame) {
  for (int number = 0; number < frame.component_count; ++number) {
    const Component& component = frame.components[static_cast<std::size_t>(number)];
    Plane& plane = planes_[static_cast<std::size_t>(number)];
    const int groups = CoefficientRow::groups_of(window_.mcus() * component.across);
    plane.stride = static_cast<std::size_t>(groups) * BlockGroup::row_values + row_slack;
    const int rows = 1 + component.down * side_of(number);
    plane.samples.resize(
        std::max(plane.samples.size(), static_cast<std::size_t>(rows) * plane.stride + row_slack));
    plane.steps.set(component.steps);
  }
  if (grid_.across == 1 && grid_.down == 1) return;
  const auto width = static_cast<std::size_t>(window_.region.width);
  sums_.resize(std::max(sums_.size(), first_sum + width / 2 + 2 + 2 * row_slack));
  for (auto& row : chroma_) row.resize(std::max(row.size(), width + 4 + 4 * row_slack));
}

void RegionPixels::make_samples(const CoefficientRow& coefficients) {
  for (int number = 0; number < frame_->component_count; ++number) {
    Plane& plane = planes_[static_cast<std::size_t>(number)];
    const CoefficientRow::Blocks& blocks = coefficients[number];
    const int side = side_of(number);
    for (int row = 0; row < blocks.down; ++row) {
      std::uint8_t* const samples = plane.row(row * side);
      if (side == block_side)
        inverse_transform(blocks.row(row), blocks.groups, plane.steps, samples, plane.stride);
      else
        inverse_transform_reduced(blocks.row(row), blocks.groups, plane.steps, side, samples,
                                  plane.stride);
    }
  }
}

/// Makes the pixels whose samples are complete. Where rows of chroma are smoothed, the last row of
/// a row of MCUs waits for the next row of MCUs. Returns the number of rows.
int RegionPixels::make_pixels(int mcu_row) {
  const Region& region = window_.region;
  const int top = mcu_row * grid_.mcu_height;
  const int waiting = grid_.down > 1 ? 1 : 0;
  const int region_end = region.y + region.height;
  const int begin = std::max(region.y, top - waiting);
  const int end = mcu_row == window_.last_mcu_row
                      ? region_end
                      : std::min(region_end, top + grid_.mcu_height - waiting);
  const std::size_t stride = stride_of(region.width);
  const auto width = static_cast<std::size_t>(region.width);
  const auto column = static_cast<std::size_t>(region.x - window_.first_mcu * grid_.mcu_width);
  for (int y = begin; y < end; ++y, next_row_ += stride) {
    const std::uint8_t* light = planes_[0].row(y - top) + column;
    if (frame_->component_count == 1)
      grey_to_rgb(light, next_row_, width);
    else
      ycc_to_rgb(light, chroma_row(1, mcu_row, y), chroma_row(2, mcu_row, y), next_row_, width);
  }
  return std::max(end - begin, 0);
}

/// Returns a component's samples for row `y` of the image, at the region's resolution.
const std::uint8_t* RegionPixels::chroma_row(int component, int mcu_row, int y) {
  Plane& plane = planes_[static_cast<std::size_t>(component)];
  const int side = side_of(component);
  const int top = mcu_row * side;
  const int left = window_.region.x / grid_.across;
  const std::size_t column = static_cast<std::size_t>(left - window_.first_mcu * side);
  const int near_y = y / grid_.down;
  const bool upper = y % 2 == 0;
  const int far_y =
      grid_.down == 1 ? near_y : std::clamp(near_y + (upper ? -1 : 1), 0, grid_.chroma_height - 1);
  const std::uint8_t* const near_row = plane.row(near_y - top) + column;
  const std::uint8_t* const far_row = plane.row(far_y - top) + column;
  std::uint8_t* const made = chroma_[static_cast<std::size_t>(component - 1)].data();
  if (grid_.across == 1) {
    if (grid_.down == 1) return near_row;
    smooth_down(near_row, far_row, made, static_cast<std::size_t>(window_.region.width), upper);
    return made;
  }
  const int right = (window_.region.x + window_.region.width - 1) / grid_.across;
  const int samples = right - left + 1;
  const auto count = static_cast<std::size_t>(samples);
  std::int16_t* const sums = sums_.data() + first_sum;
  // Includes the neighbour on each side. At the image's edge a sample is its own neighbour.
  const std::size_t before = left > 0 ? 1 : 0;
  if (grid_.down == 1)
    widen_row(near_row - before, sums - before, count + before + 1);
  else
    sum_rows(near_row - before, far_row - before, sums - before, count + before + 1);
  if (left == 0) sums[-1] = sums[0];
  if (right == grid_.chroma_width - 1) sums[count] = sums[count - 1];
  smooth_across(sums, made, count, grid_.down > 1);
  return made + window_.region.x % grid_.across;
}

void RegionPixels::keep_last_rows() {
  if (grid_.down == 1) return;
  for (int number = 0; number < frame_->component_count; ++number) {
    Plane& plane = planes_[static_cast<std::size_t>(number)];
    const int rows = frame_->components[static_cast<std::size_t>(number)].down * side_of(number);
    std::memcpy(plane.row(-1), plane.row(rows - 1), plane.stride);
  }
}

}  // namespace millrace::jpeg
