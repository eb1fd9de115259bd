// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/operations.h"

namespace millrace {
namespace {

Region intersection(const Region& region, Size image) {
  const int left = std::max(region.x, 0);
  const int top = std::max(region.y, 0);
  return {left, top, std::min(region.x + region.width, image.width) - left,
          std::min(region.y + region.height, image.height) - top};
}

class CenterCropOperation final : public GeometricOperation {
 public:
  const char* name() const override { return "center_crop"; }
  void describe(Parameters&) override {}

  bool is_random() const override { return false; }
  bool makes_output() const override { return true; }
  const char* fold(Fold& fold, Random&) const override {
    const Region window = center_crop(fold.resampling.to, fold.output);
    const Region visible = intersection(window, fold.resampling.to);
    fold.resampling.window = visible;
    fold.x = visible.x - window.x;
    fold.y = visible.y - window.y;
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const CenterCrop&) : held_(make_center_crop()) {}

std::shared_ptr<ImageOperation> make_center_crop() {
  return std::make_shared<CenterCropOperation>();
}

}  // namespace millrace
