// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

constexpr const char* places[] = {"worker", "device"};  // names of `FlipOn`
constexpr const char* field = "flip";

class RandomHorizontalFlipOperation final
    : public OperationOf<RandomHorizontalFlip, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.number("p", parameters_.p, {0, 1});
    parameters.named("on", parameters_.on, places);
  }

  bool joins_resampling() const override { return parameters_.on == FlipOn::worker; }
  void plan(ResamplePlan& plan, Random& random) const override {
    if (drawn(random)) plan.mirror();
  }
  void run(SampleImage& image, Random& random) const override {
    *static_cast<std::uint8_t*>(image.sample[field].data) = drawn(random) ? 1 : 0;
  }

  std::vector<FieldSpec> fields() const override {
    if (joins_resampling()) return {};
    return {{.name = field, .dtype = DType::uint8, .shape = {}, .flipped_image = "image"}};
  }

 private:
  bool drawn(Random& random) const { return random.uniform() < parameters_.p; }
};

}  // namespace

Operation::Operation(const RandomHorizontalFlip& parameters)
    : implementation_(std::make_shared<RandomHorizontalFlipOperation>(parameters)) {}

}  // namespace millrace
