// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/error.h>
#include <millrace/target.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/image_operation.h"
#include "ops/resample_plan.h"

namespace millrace {

/// Makes one target of each record for a worker; reusable. The calls for each sample are: `read`;
/// for targets that move, `place` and then the functions of `SpatialTargets` in the order of the
/// operations; and `write`.
class TargetWorker : public SpatialTargets {
 public:
  /// Reads the record's field, which must outlive the call of `write`. Returns a bad status with
  /// the reason if the field is not valid.
  virtual Status read(std::span<const std::byte> bytes) = 0;
  /// Moves the target as `plan` moves the pixels of the image, whose stored size is the first
  /// argument. Returns a bad status with the reason if that is not possible.
  virtual Status place(Size, const ResamplePlan&) { return Status::ok(); }
  /// The rows of the boxes that are kept, and the number of boxes before.
  struct Kept {
    std::span<const std::uint32_t> rows{};
    std::size_t boxes = 0;
  };
  /// Writes the sample's field number `field`. A target that belongs to boxes writes the rows of
  /// the kept boxes. Returns a bad status with the reason if that is not possible.
  virtual Status write(Sample& sample, std::size_t field, const Kept& kept) = 0;
  /// Returns the kept boxes; only boxes have any.
  virtual Kept kept() const { return {}; }

  void warp(const AffineMap&) override {}
  void warp(const PerspectiveMap&) override {}
  void rotate(double) override {}
};

std::unique_ptr<TargetWorker> make_mask_worker(const MaskTarget& target,
                                               std::shared_ptr<DecodeBudget> budget);
std::unique_ptr<TargetWorker> make_boxes_worker(const BoxesTarget& target);
std::unique_ptr<TargetWorker> make_keypoints_worker(const KeypointsTarget& target);
std::unique_ptr<TargetWorker> make_values_worker(const ValuesTarget& target);

}  // namespace millrace
