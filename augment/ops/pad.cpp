// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

constexpr const char* padding_modes[] = {"constant", "edge", "reflect", "symmetric"};

class PadOperation final : public OperationOf<Pad, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    describe_padding(parameters, parameters_.padding, parameters_.fill, parameters_.padding_mode);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return false; }
  bool repeats_pixels() const override { return parameters_.padding_mode != PaddingMode::constant; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    plan.padding_map.borders.push_back(
        {parameters_.padding, parameters_.padding_mode, parameters_.fill});
    return nullptr;
  }
};

}  // namespace

void describe_padding(Parameters& parameters, Padding& padding, Colour& fill, PaddingMode& mode) {
  static constexpr NumberList list{.what = "one, two or four integers, [left, top, right, bottom]",
                                   .counts = {1, 2, 4},
                                   .limits = {0, largest_side},
                                   .whole = true};
  const auto number = [](int width) { return static_cast<double>(width); };
  std::vector<double> widths{number(padding.left), number(padding.top), number(padding.right),
                             number(padding.bottom)};
  const std::vector<double> before = widths;
  parameters.numbers("padding", widths, list);
  if (widths != before) {
    const auto width = [&](std::size_t side) {
      return static_cast<int>(widths[side % widths.size()]);
    };
    padding = {width(0), width(1), width(2), width(3)};
  }
  parameters.colour("fill", fill);
  parameters.named("padding_mode", mode, padding_modes);
}

Operation::Operation(const Pad& parameters)
    : implementation_(std::make_shared<PadOperation>(parameters)) {}

}  // namespace millrace
