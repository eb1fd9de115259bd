// SPDX-License-Identifier: Apache-2.0
#include <millrace/mix_work.h>
#include <millrace/warp_operations.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "ops/operation_of.h"

namespace millrace {
namespace {

constexpr double steepest_erasing = 1000;
constexpr const char* erase_places[] = {"worker", "device"};  // names of `EraseOn`
constexpr const char* erase_field = "erase";

class RandomErasingOperation final : public OperationOf<RandomErasing, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.number("p", parameters_.p, {0, 1});
    parameters.range("scale", parameters_.scale, {0, 1}, OneNumber::refused);
    parameters.range("ratio", parameters_.ratio, {1 / steepest_erasing, steepest_erasing},
                     OneNumber::refused);
    parameters.colour("value", parameters_.value);
    constexpr const char* ignored[] = {"true", "false"};
    parameters.only("inplace", ignored);
    parameters.named("on", parameters_.on, erase_places);
  }

  void run(SampleImage& image, Random& random) const override {
    std::optional<Region> box;
    if (random.uniform() < parameters_.p) box = drawn_box(image.size, random);
    if (parameters_.on == EraseOn::device) return tell_device(image.sample, box.value_or(Region()));
    if (!box) return;
    const Colour value = parameters_.value;
    const std::array pixel{static_cast<std::uint8_t>(value.red),
                           static_cast<std::uint8_t>(value.green),
                           static_cast<std::uint8_t>(value.blue)};
    for (int y = box->y; y < box->y + box->height; ++y) {
      std::uint8_t* to = image.pixels + 3 * (static_cast<std::size_t>(y) *
                                                 static_cast<std::size_t>(image.size.width) +
                                             static_cast<std::size_t>(box->x));
      for (int x = 0; x < box->width; ++x, to += pixel.size())
        std::memcpy(to, pixel.data(), pixel.size());
    }
  }

  std::vector<FieldSpec> fields() const override {
    if (parameters_.on == EraseOn::worker) return {};
    return {{.name = erase_field,
             .dtype = DType::int32,
             .shape = {MixWork::erase_numbers},
             .erased_image = "image"}};
  }

 private:
  void tell_device(const Sample& sample, const Region& box) const {
    const Colour value = parameters_.value;
    const std::array<std::int32_t, MixWork::erase_numbers> numbers{
        box.x, box.y, box.width, box.height, value.red, value.green, value.blue, 0};
    std::ranges::copy(numbers, sample[erase_field].as<std::int32_t>().begin());
  }

  /// Draws a box as torchvision's `RandomErasing.get_params` does: draws up to ten boxes and
  /// returns the first one that fits, or nullopt.
  std::optional<Region> drawn_box(Size image, Random& random) const {
    const double area = static_cast<double>(image.width) * image.height;
    const Range log_ratio{std::log(parameters_.ratio.low), std::log(parameters_.ratio.high)};
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double box_area = area * random.uniform(parameters_.scale.low, parameters_.scale.high);
      const double ratio = std::exp(random.uniform(log_ratio.low, log_ratio.high));
      const double height = std::nearbyint(std::sqrt(box_area * ratio));
      const double width = std::nearbyint(std::sqrt(box_area / ratio));
      if (height >= image.height || width >= image.width) continue;
      Region box{0, 0, static_cast<int>(width), static_cast<int>(height)};
      const auto place = [&](int free) {
        return static_cast<int>(random.below(static_cast<std::uint64_t>(free) + 1));
      };
      box.y = place(image.height - box.height);
      box.x = place(image.width - box.width);
      return box;
    }
    return std::nullopt;
  }
};

}  // namespace

Operation::Operation(const RandomErasing& parameters)
    : implementation_(std::make_shared<RandomErasingOperation>(parameters)) {}

}  // namespace millrace
