// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class ResizeOperation final : public OperationOf<Resize, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    describe_size(parameters);
    describe_max_size(parameters);
    describe_interpolation(parameters, parameters_.interpolation);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return false; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    if (const char* reason = plan.why_fixed()) return reason;
    Resampling& resampling = plan.resampling;
    resampling.to = made_of(resampling.from);
    if (resampling.to.width == 0 || resampling.to.height == 0)
      plan.problem = "resize makes no pixels of an image of " +
                     std::to_string(resampling.from.width) + " x " +
                     std::to_string(resampling.from.height) + " with \"max_size\" " +
                     std::to_string(parameters_.max_size);
    resampling.window = {0, 0, resampling.to.width, resampling.to.height};
    resampling.interpolation = parameters_.interpolation;
    plan.resized = true;
    return nullptr;
  }

 private:
  bool is_exact() const { return parameters_.exact.width != 0 || parameters_.exact.height != 0; }

  Size made_of(Size image) const {
    if (is_exact()) return parameters_.exact;
    if (parameters_.max_size == 0) return resize_shorter(image, parameters_.size);
    return resize_shorter(image, parameters_.size, parameters_.max_size);
  }

  /// Must be called after `describe_size`, since the size limits `max_size`.
  void describe_max_size(Parameters& parameters) {
    NumberList list{.what = "an integer",
                    .counts = {1},
                    .limits = {parameters_.size + 1.0, largest_side},
                    .whole = true};
    if (is_exact())
      list = {.what = "left out where \"size\" has two numbers", .counts = {}, .limits = {0, 0}};
    std::vector<double> max_size;
    if (parameters_.max_size != 0) max_size.push_back(parameters_.max_size);
    parameters.numbers("max_size", max_size, list);
    parameters_.max_size = max_size.empty() ? 0 : static_cast<int>(max_size.front());
  }

  void describe_size(Parameters& parameters) {
    static constexpr NumberList list{.what = "an integer, or two, [width, height]",
                                     .counts = {1, 2},
                                     .limits = {1, largest_side},
                                     .whole = true,
                                     .required = true};
    const Size exact = parameters_.exact;
    std::vector<double> size{static_cast<double>(parameters_.size)};
    if (is_exact()) size = {static_cast<double>(exact.width), static_cast<double>(exact.height)};
    const std::vector<double> before = size;
    parameters.numbers("size", size, list);
    if (size == before) return;
    if (size.size() == 1)
      parameters_ = {static_cast<int>(size[0]), parameters_.interpolation, {0, 0}, 0};
    else
      parameters_.exact = {static_cast<int>(size[0]), static_cast<int>(size[1])};
  }
};

}  // namespace

Operation::Operation(const Resize& parameters)
    : implementation_(std::make_shared<ResizeOperation>(parameters)) {}

}  // namespace millrace
