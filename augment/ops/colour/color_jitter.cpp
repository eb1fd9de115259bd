// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include <array>
#include <utility>

#include "ops/colour/factors.h"
#include "ops/operation_of.h"
#include "pixels/adjust.h"

namespace millrace {
namespace {

/// Draws one of the 24 orders of the four properties, with equal probability. Then draws a factor
/// for each property that may change, uniform in its range. Source: `ColorJitter.get_params` in
/// torchvision, `ImageEnhance` and the HSV of Pillow.
class ColorJitterOperation final : public OperationOf<ColorJitter, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.range("brightness", parameters_.brightness, any_factor, OneNumber::around_one);
    parameters.range("contrast", parameters_.contrast, any_factor, OneNumber::around_one);
    parameters.range("saturation", parameters_.saturation, any_factor, OneNumber::around_one);
    parameters.range("hue", parameters_.hue, any_hue, OneNumber::around_zero);
  }
  void run(SampleImage& image, Random& random) const override {
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t n = order.size(); n > 1; --n)
      std::swap(order[n - 1], order[static_cast<std::size_t>(random.below(n))]);
    const std::array<std::pair<Property, Range>, 4> properties{
        {{Property::brightness, parameters_.brightness},
         {Property::contrast, parameters_.contrast},
         {Property::saturation, parameters_.saturation},
         {Property::hue, parameters_.hue}}};
    std::array<double, 4> factors{};
    for (std::size_t n = 0; n < properties.size(); ++n)
      if (changes(properties[n].first, properties[n].second))
        factors[n] = random.uniform(properties[n].second.low, properties[n].second.high);
    std::array<Adjustment, 4> adjustments{};
    std::size_t count = 0;
    for (const std::size_t n : order)
      if (changes(properties[n].first, properties[n].second))
        adjustments[count++] = {properties[n].first, factors[n]};
    adjust(std::span(image.pixels, image.bytes()), std::span(adjustments).first(count));
  }

 private:
  static bool changes(Property property, Range range) {
    const double nothing = property == Property::hue ? 0 : 1;
    return range.low != nothing || range.high != nothing;
  }
};

}  // namespace

Operation::Operation(const ColorJitter& parameters)
    : implementation_(std::make_shared<ColorJitterOperation>(parameters)) {}

}  // namespace millrace
