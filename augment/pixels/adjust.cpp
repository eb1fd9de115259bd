// SPDX-License-Identifier: Apache-2.0
#include "pixels/adjust.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "pixels/adjust_passes.h"

namespace millrace {
namespace {

/// Steps that have not been applied to the pixels yet.
class Pending {
 public:
  explicit Pending(std::span<std::uint8_t> pixels)
      : pixels_(pixels.data()), count_(pixels.size() / 3) {}

  void add(const Step& step) {
    if (number_ == most) take({.from_planes = as_planes_});
    steps_[number_++] = step;
  }
  /// Applies the pending steps. Returns the rounded mean luma of the result.
  int mean() {
    const auto sum = static_cast<double>(take({.from_planes = as_planes_, .sums = true}));
    return static_cast<int>(std::floor(sum / static_cast<double>(count_) + 0.5));
  }
  /// Applies the pending steps and stores the pixels in their original layout.
  void finish() {
    if (number_ > 0 || as_planes_) take({.from_planes = as_planes_});
  }

 private:
  std::uint64_t take(Pass pass) {
    const auto sum = take_steps(pixels_, count_, std::span(steps_).first(number_), pass);
    number_ = 0;
    as_planes_ = pass.sums;
    return sum;
  }

  static constexpr std::size_t most = 4;
  std::uint8_t* pixels_;
  std::size_t count_;
  std::array<Step, most> steps_{};
  std::size_t number_ = 0;
  bool as_planes_ = false;
};

/// Converts as `np.uint8(factor * 255)` does.
std::uint8_t hue_shift(double factor) {
  return static_cast<std::uint8_t>(static_cast<int>(factor * 255) & 0xFF);
}

}  // namespace

void adjust(std::span<std::uint8_t> pixels, std::span<const Adjustment> adjustments) {
  if (pixels.empty()) return;
  Pending pending(pixels);
  for (const Adjustment& one : adjustments) {
    const auto factor = static_cast<float>(one.factor);
    if (one.of == Property::hue) {
      pending.add({.kind = Step::Kind::hue, .shift = hue_shift(one.factor)});
    } else if (factor == 1) {
      continue;
    } else if (one.of == Property::saturation) {
      pending.add({.kind = Step::Kind::grey, .slope = slope_from_any(factor)});
    } else {
      const int base = one.of == Property::contrast ? pending.mean() : 0;
      pending.add({.kind = Step::Kind::level, .slope = slope_from(base, factor), .base = base});
    }
  }
  pending.finish();
}

void make_grey(std::span<std::uint8_t> pixels) { adjust(pixels, Property::saturation, 0); }

std::size_t sharpness_memory(Size size) {
  const std::size_t row = 3 * static_cast<std::size_t>(size.width);
  return row * sizeof(std::uint16_t) + 2 * row;
}

void adjust_sharpness(std::uint8_t* pixels, Size size, double factor,
                      std::span<std::uint8_t> memory) {
  if (size.width < 3 || size.height < 3) return;  // too small for the 3 x 3 filter
  const Slope slope = slope_from_any(static_cast<float>(factor));
  const std::size_t row = 3 * static_cast<std::size_t>(size.width);
  auto* sums = reinterpret_cast<std::uint16_t*>(memory.data());
  // Copies of the original rows, which the loop overwrites.
  std::uint8_t* above = memory.data() + row * sizeof(std::uint16_t);
  std::uint8_t* at = above + row;
  std::memcpy(above, pixels, row);
  for (int y = 1; y + 1 < size.height; ++y) {
    std::uint8_t* made = pixels + static_cast<std::size_t>(y) * row;
    std::memcpy(at, made, row);
    sharpen_row(above, at, made + row, made, sums, static_cast<std::size_t>(size.width), slope);
    std::swap(above, at);
  }
}

}  // namespace millrace
