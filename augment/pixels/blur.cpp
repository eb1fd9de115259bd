// SPDX-License-Identifier: Apache-2.0
#include "pixels/blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "pixels/blur_passes.h"

namespace millrace {
namespace {

constexpr int box_passes = 3;

std::size_t row_bytes(Size size) { return 3 * static_cast<std::size_t>(size.width); }

/// Returns the index of `at` among `count` pixels that are reflected at both ends, as often as
/// needed.
int reflected(int at, int count) {
  if (count == 1) return 0;
  const int period = 2 * (count - 1);
  const int place = ((at % period) + period) % period;
  return std::min(place, period - place);
}

/// Returns the weights from the kernel's middle to its end. Source: `_get_gaussian_kernel1d` in
/// torchvision's functional_tensor.py.
std::vector<float> gaussian_weights(int kernel_size, double sigma) {
  std::vector<float> weights;
  float sum = 0;
  for (int n = 0; n <= kernel_size / 2; ++n) {
    const float distance = static_cast<float>(n) / static_cast<float>(sigma);
    weights.push_back(std::exp(-0.5F * (distance * distance)));
    sum += n == 0 ? weights.back() : 2 * weights.back();
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

/// Returns the box of which three passes approximate a Gaussian of standard deviation `radius`.
BlurBox box_of(double radius) {
  const auto sigma = static_cast<float>(radius);
  const float variance = sigma * sigma / box_passes;
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  const float box_radius = whole + part;
  BlurBox box{};
  box.radius = static_cast<std::size_t>(box_radius);
  box.weight = static_cast<std::uint32_t>(static_cast<float>(1 << 24) / (box_radius * 2 + 1));
  box.end_weight = ((1U << 24U) - static_cast<std::uint32_t>(2 * box.radius + 1) * box.weight) / 2;
  return box;
}

/// Extends a row at both ends with `margin` copies of the end pixel. The row's first pixel is
/// `margin` pixels after `row`.
void extend(std::uint8_t* row, std::size_t margin, std::size_t width) {
  for (std::size_t n = 0; n < margin; ++n) {
    std::memcpy(row + 3 * n, row + 3 * margin, 3);
    std::memcpy(row + 3 * (margin + width + n), row + 3 * (margin + width - 1), 3);
  }
}

/// Blurs the columns of `from` into `made`.
void box_blur_columns(const std::uint8_t* from, Size size, const BlurBox& box, std::uint32_t* sums,
                      std::uint8_t* made) {
  const std::size_t bytes = row_bytes(size);
  const auto radius = static_cast<int>(box.radius);
  const auto row = [&](int y) {
    return from + static_cast<std::size_t>(std::clamp(y, 0, size.height - 1)) * bytes;
  };
  // Starts with the sums of the box around row -1. The first `move_box` below moves it to row 0.
  std::fill_n(sums, bytes, 0);
  for (int y = -radius - 1; y < radius; ++y)
    for (std::size_t n = 0; n < bytes; ++n) sums[n] += row(y)[n];
  for (int y = 0; y < size.height; ++y) {
    move_box(row(y + radius), row(y - radius - 1), sums, bytes);
    box_blur_column(sums, row(y - radius - 1), row(y + radius + 1), box,
                    made + static_cast<std::size_t>(y) * bytes, bytes);
  }
}

}  // namespace

std::size_t gaussian_blur_memory(Size size, Size kernel) {
  const auto rows = static_cast<std::size_t>(kernel.height) + 1;
  const std::size_t padded = row_bytes(size) + 3 * static_cast<std::size_t>(kernel.width);
  return rows * (padded + blur_slack) * sizeof(float);
}

void gaussian_blur(std::uint8_t* pixels, Size size, Size kernel, double sigma,
                   std::span<std::uint8_t> memory) {
  const std::vector<float> across = gaussian_weights(kernel.width, sigma);
  const std::vector<float> down = gaussian_weights(kernel.height, sigma);
  const int half_width = kernel.width / 2;
  const int half_height = kernel.height / 2;
  const std::size_t bytes = row_bytes(size);
  const std::size_t room = bytes + blur_slack;
  auto* const ring = reinterpret_cast<float*>(memory.data());  // the rows around the current one
  float* const padded = ring + static_cast<std::size_t>(kernel.height) * room;
  const auto place = [&](int y) {
    return ring + static_cast<std::size_t>(y % kernel.height) * room;
  };
  std::vector<const float*> rows(static_cast<std::size_t>(kernel.height));
  int next = 0;
  for (int y = 0; y < size.height; ++y) {
    for (; next < size.height && next <= y + half_height; ++next) {
      const std::uint8_t* row = pixels + static_cast<std::size_t>(next) * bytes;
      float* const inner = padded + 3 * half_width;
      for (std::size_t n = 0; n < bytes; ++n) inner[n] = row[n];
      for (int n = 1; n <= half_width; ++n) {
        std::copy_n(inner + 3 * reflected(-n, size.width), 3, inner - 3 * n);
        const int behind = size.width - 1 + n;
        std::copy_n(inner + 3 * reflected(behind, size.width), 3, inner + 3 * behind);
      }
      blur_row(inner, 3, across, place(next), bytes);
    }
    for (int n = 0; n < kernel.height; ++n)
      rows[static_cast<std::size_t>(n)] = place(reflected(y + n - half_height, size.height));
    blur_column(rows.data(), down, pixels + static_cast<std::size_t>(y) * bytes, bytes);
  }
}

std::size_t extended_box_blur_memory(Size size, double radius) {
  const std::size_t image = row_bytes(size) * static_cast<std::size_t>(size.height);
  const std::size_t margins = 6 * (box_of(radius).radius + 1);
  return row_bytes(size) * sizeof(std::uint32_t) + std::max(image, row_bytes(size) + margins);
}

void extended_box_blur(std::uint8_t* pixels, Size size, double radius,
                       std::span<std::uint8_t> memory) {
  const BlurBox box = box_of(radius);
  const std::size_t bytes = row_bytes(size);
  auto* const sums = reinterpret_cast<std::uint32_t*>(memory.data());
  std::uint8_t* const copy = memory.data() + bytes * sizeof(std::uint32_t);
  const std::size_t margin = box.radius + 1;
  for (int y = 0; y < size.height; ++y)
    for (int pass = 0; pass < box_passes; ++pass) {
      std::uint8_t* row = pixels + static_cast<std::size_t>(y) * bytes;
      std::memcpy(copy + 3 * margin, row, bytes);
      extend(copy, margin, static_cast<std::size_t>(size.width));
      box_blur_row(copy, box, sums, row, bytes);
    }
  for (int pass = 0; pass < box_passes; ++pass) {
    std::memcpy(copy, pixels, bytes * static_cast<std::size_t>(size.height));
    box_blur_columns(copy, size, box, sums, pixels);
  }
}

}  // namespace millrace
