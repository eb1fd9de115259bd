// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "targets/target_worker.h"

namespace millrace {

/// How many values a target may have that vary in number.
inline constexpr int most_target_values = 1 << 24;

/// Whether one of them moves with the image.
bool has_moving(const std::vector<Target>& targets);

/// The name of the boxes that a target belongs to; empty if it belongs to none.
std::string owner_of(const Target& target);
/// The boxes of that name; nullptr if there are none.
const BoxesTarget* boxes_named(const std::vector<Target>& targets, std::string_view name);

/// What samples have of each, in their order.
std::vector<FieldSpec> fields_of(const std::vector<Target>& targets, Size output);

/// Makes all targets of a recipe for one worker.
class TargetWorkers final : public Followers {
 public:
  /// Their fields are the sample's from number `first_field` on.
  TargetWorkers(const std::vector<Target>& targets, std::size_t first_field,
                const std::shared_ptr<DecodeBudget>& budget);

  /// Takes a record's fields, which must outlive the call of `write`. Bad, with the reason. Throws
  /// `Error` (`not_found`) if the record lacks one.
  Status take(const Record& record);
  /// Whether any moves with the image: `place` must be called before `write` then.
  bool move() const { return move_; }
  /// Moves what moves as `fold` moves the pixels of the image, which has the size `stored`. Bad,
  /// with the reason.
  Status place(Size stored, const Fold& fold);
  void warp(const AffineMap& map) override;
  void warp(const PerspectiveMap& map) override;
  void rotate(double degrees) override;
  /// Writes all of them. Bad, with the reason.
  Status write(Sample& sample);

 private:
  struct One {
    std::string field;
    std::unique_ptr<TargetWorker> worker;
    /// The place of the boxes that it belongs to, or its own.
    std::size_t owner;
  };
  Status write_one(std::size_t place, Sample& sample);

  std::vector<One> all_;
  std::size_t first_field_;
  bool move_;
};

}  // namespace millrace
