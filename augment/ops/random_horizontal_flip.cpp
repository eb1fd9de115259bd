// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

constexpr const char* places[] = {"worker", "device"};  // of `FlipOn`
constexpr const char* field = "flip";

class RandomHorizontalFlipOperation final : public PixelOperation {
 public:
  explicit RandomHorizontalFlipOperation(const RandomHorizontalFlip& parameters)
      : parameters_(parameters) {}

  const char* name() const override { return "random_horizontal_flip"; }
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
    return {{.name = field, .dtype = DType::uint8, .shape = {}, .flips = "image"}};
  }

 private:
  bool drawn(Random& random) const { return random.uniform() < parameters_.p; }

  RandomHorizontalFlip parameters_;
};

}  // namespace

Operation::Operation(const RandomHorizontalFlip& parameters)
    : held_(std::make_shared<RandomHorizontalFlipOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_horizontal_flip() {
  return std::make_shared<RandomHorizontalFlipOperation>(RandomHorizontalFlip{});
}

}  // namespace millrace
