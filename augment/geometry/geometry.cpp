// SPDX-License-Identifier: Apache-2.0
#include <millrace/geometry.h>

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

/// Rounds halves to even, as Python does.
double rounded(double value) { return std::nearbyint(value); }

/// Places an edge in 0 .. free, as torchvision does: floor(draw x (free + 1)).
int edge(double draw, int free) { return static_cast<int>(std::floor(draw * (free + 1.0))); }

Region centred(Size image, Size box) {
  return {(image.width - box.width) / 2, (image.height - box.height) / 2, box.width, box.height};
}

int centred_edge(int image, int crop) {
  return crop > image ? -((crop - image) / 2) : static_cast<int>(rounded((image - crop) / 2.0));
}

}  // namespace

Region random_resized_crop(Size image, Range scale, Range ratio,
                           const std::function<double()>& draw) {
  const double area = static_cast<double>(image.width) * image.height;
  const Range log_ratio{std::log(ratio.low), std::log(ratio.high)};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double box_area = area * (scale.low + draw() * (scale.high - scale.low));
    const double box_ratio = std::exp(log_ratio.low + draw() * (log_ratio.high - log_ratio.low));
    const double width = rounded(std::sqrt(box_area * box_ratio));
    const double height = rounded(std::sqrt(box_area / box_ratio));
    if (width < 1 || width > image.width || height < 1 || height > image.height) continue;
    Region box{0, 0, static_cast<int>(width), static_cast<int>(height)};
    box.y = edge(draw(), image.height - box.height);
    box.x = edge(draw(), image.width - box.width);
    return box;
  }

  Size box = image;
  const double image_ratio = static_cast<double>(image.width) / image.height;
  if (image_ratio < ratio.low)
    box.height = std::max(1, static_cast<int>(rounded(image.width / ratio.low)));
  if (image_ratio > ratio.high)
    box.width = std::max(1, static_cast<int>(rounded(image.height * ratio.high)));
  return centred(image, box);
}

Size resize_shorter(Size image, int shorter) {
  // A longer image is refused later. Until then an `int` must hold its length.
  constexpr double longest_in_messages = 1e9;
  const auto longer = [&](int longest, int shortest) {
    return static_cast<int>(
        std::min(static_cast<double>(shorter) * longest / shortest, longest_in_messages));
  };
  if (image.width <= image.height) return {shorter, longer(image.height, image.width)};
  return {longer(image.width, image.height), shorter};
}

Size resize_shorter(Size image, int shorter, int max_size) {
  const Size free = resize_shorter(image, shorter);
  const int longer = std::max(free.width, free.height);
  if (longer <= max_size) return free;
  const int reduced = static_cast<int>(static_cast<double>(max_size) * shorter / longer);
  return image.width <= image.height ? Size{reduced, max_size} : Size{max_size, reduced};
}

Region center_crop(Size image, Size crop) {
  return {centred_edge(image.width, crop.width), centred_edge(image.height, crop.height),
          crop.width, crop.height};
}

Region crop_of_five(Size image, Size crop, int number) {
  if (number == 4) return center_crop(image, crop);
  return {number % 2 == 0 ? 0 : image.width - crop.width,
          number < 2 ? 0 : image.height - crop.height, crop.width, crop.height};
}

}  // namespace millrace
