// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/image_operation.h"

namespace millrace {

/// An operation's number and name, for messages: "ops[1] (resize)".
std::string place_of(std::span<const Operation> ops, std::size_t number);

/// Why these operations cannot run in this order, naming the one at fault; empty if they can.
std::string order_problem(std::span<const Operation> ops);

/// Why this operation cannot be run by another one; nullptr if it can.
const char* nesting_problem(const Operation& op);

/// How many images a sample of these operations has.
int views_of(std::span<const Operation> ops);

/// Whether an operation leaves its work to the device.
bool runs_on_device(const Operation& op);

/// Whether that is a flip.
bool flips_on_device(const Operation& op);

/// Whether an operation, or one that it runs, moves pixels without telling what else should follow.
bool moves_alone(const Operation& op);

/// Operations as workers run them: those that fold folded, then the others in place. They draw
/// their random numbers in their own order. Immutable; workers share one.
class Program {
 public:
  /// Of operations that have no `order_problem`.
  Program(Size output, std::span<const Operation> ops, Like like = {});

  /// Whether `fold` needs the image's EXIF orientation, 1 to 8; else it may be given 1.
  bool needs_orientation() const;
  /// How many images a sample has.
  int views() const;
  /// For the image number `view` of them.
  Fold fold(Size image, int orientation, Random& random, int view = 0) const;
  /// The first geometric operation that draws random numbers; nullptr if none does.
  const ImageOperation* random_geometry() const;
  /// For a program without such: what the geometric operations make of an image, before the others
  /// that fold.
  Fold fold_geometry(Size image, int orientation, int view = 0) const;
  /// What those others exchange of it: left and right, top and bottom. They draw their random
  /// numbers as `fold` has them do.
  struct Flips {
    bool mirrored = false;
    bool flipped = false;
  };
  Flips flips(Random& random) const;
  void run(SampleImage& image, Random& random) const;
  /// The fields that operations add to the sample.
  std::vector<FieldSpec> fields() const;

 private:
  Size output_;
  Like like_;
  std::vector<Operation> ops_;  // holds what the others point to
  std::vector<const GeometricOperation*> geometric_;
  std::vector<const PixelOperation*> folded_;
  std::vector<const PixelOperation*> in_place_;
};

}  // namespace millrace
