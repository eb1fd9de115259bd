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

#include "ops/fold.h"
#include "ops/image_operation.h"

namespace millrace {

/// Makes one target of each record for a worker, used again and again. For each sample `take` is
/// called, for what moves `place` and then `Followers`' functions in the order of the operations,
/// and `write`.
class TargetWorker : public Followers {
 public:
  /// Takes the record's field, which outlives the call of `write`. Bad, with the reason.
  virtual Status take(std::span<const std::byte> bytes) = 0;
  /// Moves it as `fold` moves the pixels of the image, which has the size `stored`. Bad, with the
  /// reason.
  virtual Status place(Size, const Fold&) { return Status::ok(); }
  /// Which boxes are kept, of so many.
  struct Kept {
    std::span<const std::uint32_t> rows{};
    std::size_t boxes = 0;
  };
  /// Writes the sample's field number `field`. Of what belongs to boxes it writes that of the kept
  /// ones. Bad, with the reason.
  virtual Status write(Sample& sample, std::size_t field, const Kept& kept) = 0;
  /// Of boxes that are written.
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
