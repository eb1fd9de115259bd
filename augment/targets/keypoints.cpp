// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <string>

#include "targets/placement.h"
#include "targets/rows.h"

namespace millrace {
namespace {

class KeypointsWorker final : public TargetWorker {
 public:
  explicit KeypointsWorker(const KeypointsTarget& target) : target_(target) {}

  Status read(std::span<const std::byte> bytes) override {
    if (Status checked = check_rows(bytes, row_bytes(), target_.max_length, belongs_to_boxes());
        !checked.is_ok())
      return checked;
    numbers_.resize(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(numbers_.data(), bytes.data(), bytes.size());
    bool finite = true;
    for_each_point([&](FloatPoint point) {
      finite = finite && std::isfinite(point.x) && std::isfinite(point.y);
      return point;
    });
    return finite ? Status::ok() : Status::bad("has a coordinate that is not finite");
  }

  Status place(Size stored, const ResamplePlan& plan) override {
    output_ = plan.output;
    const bool are_fractions = target_.unit == CoordinateUnit::fractions;
    for_each_point([&](FloatPoint point) {
      if (are_fractions) {
        point.x *= static_cast<float>(stored.width);
        point.y *= static_cast<float>(stored.height);
      }
      return placed(plan, point);
    });
    return Status::ok();
  }

  void warp(const AffineMap& map) override { for_each_point(ForwardWarp(map)); }
  void warp(const PerspectiveMap& map) override { for_each_point(ForwardWarp(map)); }
  void rotate(double degrees) override {
    for_each_point(ForwardWarp(rotation_map(output_, degrees)));
  }

  Status write(Sample& sample, std::size_t field, const Kept& kept) override {
    return write_rows(std::as_bytes(std::span(numbers_)), row_bytes(), belongs_to_boxes(), kept,
                      sample, field);
  }

 private:
  bool belongs_to_boxes() const { return !target_.of.empty(); }
  std::size_t row_bytes() const {
    return sizeof(float) * static_cast<std::size_t>(target_.values) *
           static_cast<std::size_t>(target_.points);
  }

  /// Replaces the coordinates of each point by the result of `call` for them.
  template <typename Call>
  void for_each_point(const Call& call) {
    const auto step = static_cast<std::size_t>(target_.values);
    for (std::size_t at = 0; at + 1 < numbers_.size(); at += step) {
      const FloatPoint point = call(FloatPoint{numbers_[at], numbers_[at + 1]});
      numbers_[at] = point.x;
      numbers_[at + 1] = point.y;
    }
  }

  KeypointsTarget target_;
  Size output_{};
  std::vector<float> numbers_;
};

}  // namespace

std::unique_ptr<TargetWorker> make_keypoints_worker(const KeypointsTarget& target) {
  return std::make_unique<KeypointsWorker>(target);
}

}  // namespace millrace
