// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class RandomCropOperation final : public OperationOf<RandomCrop, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.output("size");
    describe_padding(parameters, parameters_.padding, parameters_.fill, parameters_.padding_mode);
    parameters.flag("pad_if_needed", parameters_.pad_if_needed);
  }

  bool makes_output() const override { return true; }
  bool repeats_pixels() const override { return parameters_.padding_mode != PaddingMode::constant; }
  const char* plan(ResamplePlan& plan, Random& random) const override {
    const auto pad = [&](const Padding& padding) {
      if (padding != Padding{})
        plan.padding_map.borders.push_back({padding, parameters_.padding_mode, parameters_.fill});
    };
    pad(parameters_.padding);
    if (parameters_.pad_if_needed) {
      const int across = std::max(plan.output.width - plan.padded().width, 0);
      pad({across, 0, across, 0});
      const int down = std::max(plan.output.height - plan.padded().height, 0);
      pad({0, down, 0, down});
    }
    if (!plan.holds_output(name(), "; \"pad_if_needed\" would make it larger")) return nullptr;
    const Size image = plan.padded();
    const int free_rows = image.height - plan.output.height;
    const int free_columns = image.width - plan.output.width;
    const auto place = [&](int free) {
      return static_cast<int>(random.below(static_cast<std::uint64_t>(free) + 1));
    };
    const int top = place(free_rows);
    plan.show(place(free_columns), top);
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const RandomCrop& parameters)
    : implementation_(std::make_shared<RandomCropOperation>(parameters)) {}

}  // namespace millrace
