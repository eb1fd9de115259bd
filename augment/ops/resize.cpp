// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

class ResizeOperation final : public GeometricOperation {
 public:
  explicit ResizeOperation(const Resize& parameters) : parameters_(parameters) {}

  const char* name() const override { return "resize"; }
  void describe(Parameters& parameters) override {
    describe_size(parameters);
    describe_interpolation(parameters, parameters_.interpolation);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return false; }
  const char* fold(Fold& fold, Random&) const override {
    if (const char* reason = fold.why_fixed()) return reason;
    Resampling& resampling = fold.resampling;
    resampling.to =
        is_exact() ? parameters_.exact : resize_shorter(resampling.from, parameters_.size);
    resampling.window = {0, 0, resampling.to.width, resampling.to.height};
    resampling.interpolation = parameters_.interpolation;
    fold.resized = true;
    return nullptr;
  }

 private:
  bool is_exact() const { return parameters_.exact.width != 0 || parameters_.exact.height != 0; }

  void describe_size(Parameters& parameters) {
    static constexpr NumberList list{.what = "an integer, or two, [width, height]",
                                     .counts = {1, 2},
                                     .limits = {1, largest_side},
                                     .whole = true};
    const Size exact = parameters_.exact;
    std::vector<double> size{static_cast<double>(parameters_.size)};
    if (is_exact()) size = {static_cast<double>(exact.width), static_cast<double>(exact.height)};
    const std::vector<double> before = size;
    parameters.numbers("size", size, list);
    if (size == before) return;
    if (size.size() == 1)
      parameters_ = {static_cast<int>(size[0]), parameters_.interpolation, {0, 0}};
    else
      parameters_.exact = {static_cast<int>(size[0]), static_cast<int>(size[1])};
  }

  Resize parameters_;
};

}  // namespace

Operation::Operation(const Resize& parameters)
    : held_(std::make_shared<ResizeOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_resize() {
  return std::make_shared<ResizeOperation>(Resize{});
}

}  // namespace millrace
