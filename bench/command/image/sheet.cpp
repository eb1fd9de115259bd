// SPDX-License-Identifier: Apache-2.0
#include "command/image/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "command/image/canvas.h"

namespace millrace::cli {
namespace {

constexpr Colour white{255, 255, 255};
constexpr Colour black{0, 0, 0};
constexpr int gap = 12;
constexpr int frame_width = 3;
constexpr int longest_original = 560;
constexpr int longest_sample = 256;

Region in_pixels(const SampleGeometry& geometry, Size shown) {
  const double across = static_cast<double>(shown.width) / geometry.image.width;
  const double down = static_cast<double>(shown.height) / geometry.image.height;
  const auto pixel = [](double at) { return static_cast<int>(std::lround(at)); };
  const int left = pixel(geometry.left * across);
  const int top = pixel(geometry.top * down);
  return {left, top, pixel(geometry.right * across) - left, pixel(geometry.bottom * down) - top};
}

}  // namespace

MadeImage draw_sheet(const std::vector<std::string>& titles, const MadeImage& original,
                     const std::vector<ShownSample>& samples) {
  const MadeImage image = shrunk(original, longest_original);
  std::vector<MadeImage> tiles;
  tiles.reserve(samples.size());
  for (const ShownSample& sample : samples) tiles.push_back(shrunk(sample.image, longest_sample));
  // All images have the same size.
  const int tile_width = tiles.front().size.width + 2 * frame_width;
  const int tile_height = tiles.front().size.height + 2 * frame_width + Canvas::text_height;
  const int count = static_cast<int>(tiles.size());
  const int rows = std::max(1, static_cast<int>(std::lround(std::sqrt(count / 1.5))));
  const int columns = (count + rows - 1) / rows;

  const int top = gap + static_cast<int>(titles.size()) * (Canvas::text_height + gap / 2);
  Size size{gap + image.size.width + gap + columns * (tile_width + gap),
            top + std::max(image.size.height + gap, rows * (tile_height + gap))};
  for (const std::string& title : titles)
    size.width = std::max(size.width, Canvas::text_width(title) + 2 * gap);
  Canvas canvas(size, white);
  for (std::size_t line = 0; line < titles.size(); ++line)
    canvas.write(titles[line], gap, gap + static_cast<int>(line) * (Canvas::text_height + gap / 2),
                 black);
  canvas.place(image, gap, top);
  for (int n = 0; n < count; ++n) {
    const ShownSample& sample = samples[static_cast<std::size_t>(n)];
    const Colour colour = colour_of(static_cast<std::size_t>(n));
    Region box = in_pixels(sample.geometry, image.size);
    box.x += gap;
    box.y += top;
    canvas.frame(box, frame_width, colour);
    canvas.write(fmt::format("{}", n), box.x + 2 * frame_width, box.y + 2 * frame_width, colour);
    const int x = gap + image.size.width + gap + n % columns * (tile_width + gap);
    const int y = top + n / columns * (tile_height + gap);
    canvas.fill({x, y, tile_width, tile_height - Canvas::text_height}, colour);
    canvas.place(tiles[static_cast<std::size_t>(n)], x + frame_width, y + frame_width);
    canvas.write(fmt::format("{}{}{}", n, sample.geometry.mirrored ? ", flipped" : "",
                             sample.geometry.flipped ? ", upside down" : ""),
                 x, y + tile_height - Canvas::text_height + 2, black);
  }
  return canvas.image();
}

}  // namespace millrace::cli
