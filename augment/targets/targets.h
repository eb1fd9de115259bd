// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "targets/target_worker.h"

namespace millrace {

/// The largest number of values of a target of varying length.
inline constexpr int max_target_values = 1 << 24;

/// Returns whether one of the targets moves with the image.
bool has_moving(const std::vector<Target>& targets);

/// Returns the name of the boxes that a target belongs to, or an empty text.
std::string owner_of(const Target& target);
/// Returns the boxes of that name, or nullptr.
const BoxesTarget* boxes_named(const std::vector<Target>& targets, std::string_view name);

/// Returns the sample's field of each target, in their order.
std::vector<FieldSpec> fields_of(const std::vector<Target>& targets, Size output);

/// Returns the most memory, in bytes, that `TargetWorkers` hold beside their decoders' budget.
std::size_t bytes_of_targets(const std::vector<Target>& targets, Size output);

/// Makes all targets of a recipe for one worker.
class TargetWorkers final : public SpatialTargets {
 public:
  /// The targets' fields are the sample's fields from number `first_field` on.
  TargetWorkers(const std::vector<Target>& targets, std::size_t first_field,
                const std::shared_ptr<DecodeBudget>& budget);

  /// Takes a record's fields, which must outlive the call of `write`. Returns a bad status with the
  /// reason if a field is not valid. Throws `Error` (`not_found`) if the record lacks one.
  Status read(const Record& record);
  /// Returns whether any target moves with the image. If so, call `place` before `write`.
  bool move() const { return move_; }
  /// Moves the targets as `plan` moves the pixels of the image, whose stored size is `stored`.
  /// Returns a bad status with the reason if that is not possible.
  Status place(Size stored, const ResamplePlan& plan);
  void warp(const AffineMap& map) override;
  void warp(const PerspectiveMap& map) override;
  void rotate(double degrees) override;
  /// Writes all targets. Returns a bad status with the reason if one cannot be written.
  Status write(Sample& sample);

 private:
  struct One {
    std::string field;
    std::unique_ptr<TargetWorker> worker;
    /// Index in `all_` of the boxes that it belongs to, or its own index.
    std::size_t owner;
  };
  Status write_one(std::size_t place, Sample& sample);

  std::vector<One> all_;
  std::size_t first_field_;
  bool move_;
};

}  // namespace millrace
