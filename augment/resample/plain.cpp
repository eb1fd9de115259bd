// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/resample.h>

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

constexpr std::size_t channels = 3;

/// An image without gaps between its rows.
struct Picture {
  Size size;
  std::vector<std::uint8_t> bytes;

  explicit Picture(Size made) : size(made), bytes(row_bytes() * height()) {}
  std::size_t row_bytes() const { return static_cast<std::size_t>(size.width) * channels; }
  std::size_t height() const { return static_cast<std::size_t>(size.height); }
  std::uint8_t* at(int x, int y) {
    return &bytes[static_cast<std::size_t>(y) * row_bytes() +
                  static_cast<std::size_t>(x) * channels];
  }
};

/// Returns one channel of a pixel: the weighted sum of source values that lie `step` bytes apart,
/// in Pillow's integers.
std::uint8_t made(const std::uint8_t* from, std::size_t step,
                  std::span<const std::int32_t> weights) {
  std::int32_t sum = 1 << (ResampleAxis::precision_bits - 1);
  for (std::size_t tap = 0; tap < weights.size(); ++tap)
    if (weights[tap] != 0) sum += from[tap * step] * weights[tap];
  return static_cast<std::uint8_t>(std::clamp(sum >> ResampleAxis::precision_bits, 0, 255));
}

Picture horizontally(Picture& from, const ResampleAxis& axis) {
  Picture to({axis.count(), from.size.height});
  for (int y = 0; y < to.size.height; ++y)
    for (int x = 0; x < to.size.width; ++x)
      for (std::size_t channel = 0; channel < channels; ++channel)
        to.at(x, y)[channel] =
            made(from.at(axis.first() + axis.begin(x), y) + channel, channels, axis.weights(x));
  return to;
}

Picture vertically(Picture& from, const ResampleAxis& axis) {
  Picture to({from.size.width, axis.count()});
  for (int y = 0; y < to.size.height; ++y)
    for (int x = 0; x < to.size.width; ++x)
      for (std::size_t channel = 0; channel < channels; ++channel)
        to.at(x, y)[channel] = made(from.at(x, axis.first() + axis.begin(y)) + channel,
                                    from.row_bytes(), axis.weights(y));
  return to;
}

}  // namespace

void resample_plainly(const Resampling& resampling, const PixelView& image, std::uint8_t* window,
                      std::size_t stride) {
  const Size from = resampling.from;
  const Size to = resampling.to;
  const SourceBox box = resampling.box.value_or(
      SourceBox{0, 0, static_cast<float>(from.width), static_cast<float>(from.height)});
  ResampleAxis x;
  x.make({from.width, box.left, box.right, to.width, 0, to.width, resampling.interpolation, false});
  ResampleAxis y;
  y.make(
      {from.height, box.top, box.bottom, to.height, 0, to.height, resampling.interpolation, false});

  Picture picture(from);
  for (int row = 0; row < from.height; ++row)
    std::memcpy(picture.at(0, row), image.pixels + static_cast<std::size_t>(row) * image.stride,
                picture.row_bytes());
  if (vertical_first(resampling)) {
    picture = vertically(picture, y);
    picture = horizontally(picture, x);
  } else {
    picture = horizontally(picture, x);
    picture = vertically(picture, y);
  }
  const Region& wanted = resampling.window;
  for (int row = 0; row < wanted.height; ++row)
    for (int column = 0; column < wanted.width; ++column) {
      const int from_column = resampling.mirrored ? wanted.width - 1 - column : column;
      const int from_row = resampling.flipped ? wanted.height - 1 - row : row;
      std::memcpy(window + static_cast<std::size_t>(row) * stride +
                      static_cast<std::size_t>(column) * channels,
                  picture.at(wanted.x + from_column, wanted.y + from_row), channels);
    }
}

}  // namespace millrace
