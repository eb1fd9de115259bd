// SPDX-License-Identifier: Apache-2.0
#include "geometry/flip.h"
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
    auto place = static_cast<std::size_t>(parameters_.on);
    parameters.choice("on", place, places);
    if (place != static_cast<std::size_t>(parameters_.on))
      parameters_.on = static_cast<FlipOn>(place);
  }

  void run(SampleImage& image, Random& random) const override {
    const bool flip = random.uniform() < parameters_.p;
    if (parameters_.on == FlipOn::device) {
      *static_cast<std::uint8_t*>(image.sample[field].data) = flip ? 1 : 0;
      return;
    }
    if (!flip) return;
    const std::size_t row_bytes = static_cast<std::size_t>(image.size.width) * 3 + 1;
    if (image.scratch.size() < row_bytes) image.scratch.resize(row_bytes);
    flip_horizontally(image.pixels, image.size, image.scratch);
  }

  std::vector<FieldSpec> fields() const override {
    if (parameters_.on == FlipOn::worker) return {};
    return {{.name = field, .dtype = DType::uint8, .shape = {}, .flips = "image"}};
  }

 private:
  RandomHorizontalFlip parameters_;
};

}  // namespace

Operation::Operation(const RandomHorizontalFlip& parameters)
    : held_(std::make_shared<RandomHorizontalFlipOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_horizontal_flip() {
  return std::make_shared<RandomHorizontalFlipOperation>(RandomHorizontalFlip{});
}

}  // namespace millrace
