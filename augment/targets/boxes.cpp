// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <string>

#include "targets/placement.h"
#include "targets/target_worker.h"

namespace millrace {
namespace {

class BoxesWorker final : public TargetWorker {
 public:
  explicit BoxesWorker(const BoxesTarget& target) : target_(target) {}

  Status read(std::span<const std::byte> bytes) override {
    if (bytes.size() % sizeof(Box) != 0)
      return Status::bad("has " + std::to_string(bytes.size()) +
                         " bytes; a box is four float32, 16 bytes");
    const std::size_t count = bytes.size() / sizeof(Box);
    if (count > static_cast<std::size_t>(target_.max_length))
      return Status::bad("has " + std::to_string(count) +
                         " boxes; the recipe's \"max_length\" is " +
                         std::to_string(target_.max_length));
    boxes_.resize(count);
    if (count > 0) std::memcpy(boxes_.data(), bytes.data(), bytes.size());
    for (std::size_t number = 0; number < count; ++number) {
      const Box& box = boxes_[number];
      for (const float edge : {box.left, box.top, box.right, box.bottom})
        if (!std::isfinite(edge))
          return Status::bad("has a number in box " + std::to_string(number) +
                             " that is not finite");
    }
    return Status::ok();
  }

  Status place(Size stored, const ResamplePlan& plan) override {
    output_ = plan.output;
    for (Box& box : boxes_) read(box, stored);
    place_boxes(plan, boxes_);
    return Status::ok();
  }

  void warp(const AffineMap& map) override { move(ForwardWarp(map)); }
  void warp(const PerspectiveMap& map) override { move(ForwardWarp(map)); }
  void rotate(double degrees) override { move(ForwardWarp(rotation_map(output_, degrees))); }

  Status write(Sample& sample, std::size_t field, const Kept&) override {
    kept_.clear();
    auto* to = static_cast<Box*>(sample[field].data);
    for (std::uint32_t number = 0; number < boxes_.size(); ++number) {
      const Box& box = boxes_[number];
      if (!is_kept(box)) continue;
      kept_.push_back(number);
      std::memcpy(to++, &box, sizeof box);
    }
    sample.set_length(field, kept_.size());
    return Status::ok();
  }

  Kept kept() const override { return {kept_, boxes_.size()}; }

 private:
  /// Converts a box of the record to edges in pixels. Source: torchvision's
  /// `convert_bounding_box_format`.
  void read(Box& box, Size stored) const {
    if (target_.unit == CoordinateUnit::fractions) {
      const auto width = static_cast<float>(stored.width);
      const auto height = static_cast<float>(stored.height);
      box = {box.left * width, box.top * height, box.right * width, box.bottom * height};
    }
    if (target_.format == BoxFormat::cxcywh) {
      box.left -= box.right / 2;
      box.top -= box.bottom / 2;
    }
    if (target_.format != BoxFormat::xyxy) {
      box.right += box.left;
      box.bottom += box.top;
    }
  }

  void move(const ForwardWarp& warp) {
    for (Box& box : boxes_) box = warp(box, output_);
  }

  bool is_kept(const Box& box) const {
    const float width = box.right - box.left;
    const float height = box.bottom - box.top;
    const auto least = static_cast<float>(target_.min_size);
    return width >= least && height >= least &&
           width * height >= static_cast<float>(target_.min_area);
  }

  BoxesTarget target_;
  Size output_{};
  std::vector<Box> boxes_;
  std::vector<std::uint32_t> kept_;
};

}  // namespace

std::unique_ptr<TargetWorker> make_boxes_worker(const BoxesTarget& target) {
  return std::make_unique<BoxesWorker>(target);
}

}  // namespace millrace
