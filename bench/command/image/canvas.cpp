// SPDX-License-Identifier: Apache-2.0
#include "command/image/canvas.h"

#include <millrace/detail/resample.h>

#include <algorithm>
#include <cmath>

// Disables a warning: the header defines functions that are not used here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <stb/stb_easy_font.h>
#pragma GCC diagnostic pop

namespace millrace::cli {
namespace {

/// Width and height of a font point in pixels.
constexpr int text_scale = 2;

std::string ascii(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text;
}

std::size_t row_bytes(const MadeImage& image) {
  return 3 * static_cast<std::size_t>(image.size.width);
}

}  // namespace

Colour colour_of(std::size_t number) {
  constexpr Colour colours[] = {{230, 159, 0}, {86, 180, 233}, {0, 158, 115},  {240, 228, 66},
                                {0, 114, 178}, {213, 94, 0},   {204, 121, 167}};
  return colours[number % std::size(colours)];
}

Canvas::Canvas(Size size, Colour background) {
  image_.size = size;
  image_.rgb.resize(row_bytes(image_) * static_cast<std::size_t>(size.height));
  fill({0, 0, size.width, size.height}, background);
}

void Canvas::place(const MadeImage& image, int x, int y) {
  const int left = std::max(x, 0);
  const int right = std::min(x + image.size.width, image_.size.width);
  if (left >= right) return;
  for (int row = std::max(y, 0); row < std::min(y + image.size.height, image_.size.height); ++row) {
    const std::uint8_t* from = image.rgb.data() +
                               static_cast<std::size_t>(row - y) * row_bytes(image) +
                               3 * static_cast<std::size_t>(left - x);
    std::copy_n(from, 3 * static_cast<std::size_t>(right - left),
                image_.rgb.data() + static_cast<std::size_t>(row) * row_bytes(image_) +
                    3 * static_cast<std::size_t>(left));
  }
}

void Canvas::fill(const Region& region, Colour colour) {
  for (int y = std::max(region.y, 0); y < std::min(region.y + region.height, image_.size.height);
       ++y)
    for (int x = std::max(region.x, 0); x < std::min(region.x + region.width, image_.size.width);
         ++x)
      std::ranges::copy(colour, image_.rgb.data() +
                                    static_cast<std::size_t>(y) * row_bytes(image_) +
                                    3 * static_cast<std::size_t>(x));
}

void Canvas::frame(const Region& region, int width, Colour colour) {
  const int right = region.x + region.width;
  const int bottom = region.y + region.height;
  fill({region.x, region.y, region.width, width}, colour);
  fill({region.x, bottom - width, region.width, width}, colour);
  fill({region.x, region.y, width, region.height}, colour);
  fill({right - width, region.y, width, region.height}, colour);
}

void Canvas::write(const std::string& text, int x, int y, Colour colour) {
  struct Corner {
    float x, y, z;
    std::uint8_t colour[4];
  };
  std::string shown = ascii(text);
  // A character consists of at most about 20 quadrilaterals with four corners each.
  std::vector<Corner> corners(shown.size() * 80 + 4);
  const int parts = stb_easy_font_print(0, 0, shown.data(), nullptr, corners.data(),
                                        static_cast<int>(corners.size() * sizeof(Corner)));
  for (int part = 0; part < parts; ++part) {
    const Corner& first = corners[4 * static_cast<std::size_t>(part)];
    const Corner& opposite = corners[4 * static_cast<std::size_t>(part) + 2];
    const auto scaled = [](float points) {
      return static_cast<int>(std::lround(points * text_scale));
    };
    fill({x + scaled(first.x), y + scaled(first.y), scaled(opposite.x - first.x),
          scaled(opposite.y - first.y)},
         colour);
  }
}

int Canvas::text_width(const std::string& text) {
  std::string shown = ascii(text);
  return text_scale * stb_easy_font_width(shown.data());
}

MadeImage shrunk(const MadeImage& image, int longest) {
  const int longer = std::max(image.size.width, image.size.height);
  if (longer <= longest) return image;
  const auto side = [&](int length) {
    return std::max(1, static_cast<int>(std::int64_t{length} * longest / longer));
  };
  MadeImage small{{side(image.size.width), side(image.size.height)}, {}};
  small.rgb.resize(row_bytes(small) * static_cast<std::size_t>(small.size.height));
  Resampler resampler;
  const Region needed = resampler.prepare({.from = image.size,
                                           .to = small.size,
                                           .window = {0, 0, small.size.width, small.size.height}});
  const std::uint8_t* first = image.rgb.data() +
                              static_cast<std::size_t>(needed.y) * row_bytes(image) +
                              3 * static_cast<std::size_t>(needed.x);
  resampler.run({first, needed.width, needed.height, row_bytes(image)}, small.rgb.data(),
                row_bytes(small));
  return small;
}

}  // namespace millrace::cli
