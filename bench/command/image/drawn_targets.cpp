// SPDX-License-Identifier: Apache-2.0
#include "command/image/drawn_targets.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "command/image/canvas.h"

namespace millrace::cli {
namespace {

constexpr int box_frame = 2;
constexpr int point_size = 3;

/// Returns the integers of a mask or of labels.
std::vector<std::int64_t> integers_in(const Tensor& tensor, std::size_t count) {
  const auto copied = [&](auto values) {
    const auto shown = values.first(count);
    return std::vector<std::int64_t>(shown.begin(), shown.end());
  };
  switch (tensor.dtype) {
    case DType::uint8:
      return copied(tensor.as<std::uint8_t>());
    case DType::uint16:
      return copied(tensor.as<std::uint16_t>());
    case DType::int64:
      return copied(tensor.as<std::int64_t>());
    default:
      return {};
  }
}

/// Blends the colour of each mask value into the image.
void draw_mask(const Tensor& mask, MadeImage& image) {
  const std::vector<std::int64_t> numbers = integers_in(mask, mask.shape.elements());
  for (std::size_t pixel = 0; pixel < numbers.size(); ++pixel) {
    if (numbers[pixel] == 0) continue;
    const Colour colour = colour_of(static_cast<std::size_t>(numbers[pixel] - 1));
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::uint8_t& level = image.rgb[3 * pixel + channel];
      level = static_cast<std::uint8_t>((level + colour[channel]) / 2);
    }
  }
}

/// Returns the number of the colour of each box of a sample.
std::vector<std::size_t> box_colours(const MadeSample& sample, const std::string& boxes,
                                     const std::vector<Target>& targets) {
  const std::size_t count = sample.length(boxes);
  std::vector<std::size_t> colours(count);
  for (std::size_t n = 0; n < count; ++n) colours[n] = n;
  for (const Target& target : targets) {
    const auto* values = std::get_if<ValuesTarget>(&target.is);
    if (values == nullptr || values->of != boxes || values->shape.rank() > 0) continue;
    const std::vector<std::int64_t> labels = integers_in(sample[target.field], count);
    if (labels.size() != count) continue;
    std::ranges::transform(labels, colours.begin(),
                           [](std::int64_t label) { return static_cast<std::size_t>(label); });
    break;
  }
  return colours;
}

int rounded(float number) { return static_cast<int>(std::lround(number)); }

void draw_boxes(const MadeSample& sample, const std::string& field,
                const std::vector<Target>& targets, Canvas& canvas) {
  const std::span<const float> edges = sample[field].as<float>();
  const std::vector<std::size_t> colours = box_colours(sample, field, targets);
  for (std::size_t n = 0; n < colours.size(); ++n) {
    const int left = rounded(edges[4 * n]);
    const int top = rounded(edges[4 * n + 1]);
    canvas.frame({left, top, rounded(edges[4 * n + 2]) - left, rounded(edges[4 * n + 3]) - top},
                 box_frame, colour_of(colours[n]));
  }
}

void draw_points(const MadeSample& sample, const std::string& field, const KeypointsTarget& target,
                 Canvas& canvas) {
  const Tensor& tensor = sample[field];
  const std::span<const float> numbers = tensor.as<float>();
  const Size size = canvas.image().size;
  const auto step = static_cast<std::size_t>(target.values);
  const auto points = static_cast<std::size_t>(target.points);
  for (std::size_t n = 0; n < sample.length(field) * points; ++n) {
    const float x = numbers[n * step];
    const float y = numbers[n * step + 1];
    // Points may lie outside the image.
    if (!(x > -point_size && y > -point_size && x < static_cast<float>(size.width + point_size) &&
          y < static_cast<float>(size.height + point_size)))
      continue;
    canvas.fill({rounded(x) - point_size / 2, rounded(y) - point_size / 2, point_size, point_size},
                colour_of(n / points));
  }
}

}  // namespace

MadeImage with_targets(const MadeSample& sample, const std::vector<Target>& targets) {
  MadeImage image = sample.image();
  for (const Target& target : targets)
    if (std::holds_alternative<MaskTarget>(target.is)) draw_mask(sample[target.field], image);
  Canvas canvas(std::move(image));
  for (const Target& target : targets) {
    if (std::holds_alternative<BoxesTarget>(target.is))
      draw_boxes(sample, target.field, targets, canvas);
    else if (const auto* points = std::get_if<KeypointsTarget>(&target.is))
      draw_points(sample, target.field, *points, canvas);
  }
  return canvas.image();
}

}  // namespace millrace::cli
