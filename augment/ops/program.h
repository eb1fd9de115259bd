// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/image_operation.h"

namespace millrace {

/// Returns an operation's number and name for messages: "ops[1] (resize)".
std::string place_of(std::span<const Operation> ops, std::size_t number);

/// Returns the reason why these operations cannot run in this order; it names the operation. Empty
/// if they can.
std::string order_problem(std::span<const Operation> ops);

/// Returns the reason why another operation cannot run this one, or nullptr.
const char* nesting_problem(const Operation& op);

/// Returns the number of images in a sample of these operations.
int views_of(std::span<const Operation> ops);

/// Returns whether an operation leaves its work to the device.
bool runs_on_device(const Operation& op);

/// Returns whether an operation is a flip that the device makes.
bool flips_on_device(const Operation& op);

/// Returns whether an operation, or one that it runs, moves pixels but not the targets that should
/// move with them.
bool moves_alone(const Operation& op);

/// Returns the most memory that operations on pixels borrow of `SampleImage::scratch`, one after
/// the other, for an image of `size`.
ScratchSizes scratch_of(std::span<const Operation> ops, Size size);

/// Operations in the form in which workers run them: first one resampling into which operations are
/// folded, then the others in place. They draw their random numbers in this order. Immutable; all
/// workers share one.
class Program {
 public:
  /// The operations must have no `order_problem`.
  Program(Size output, std::span<const Operation> ops, Like like = {});

  /// Returns whether `plan` needs the image's EXIF orientation, 1 to 8. If not, 1 may be passed.
  bool needs_orientation() const;
  /// Returns the number of images in a sample.
  int views() const;
  /// Folds the operations for image number `view` of the sample.
  ResamplePlan plan(Size image, int orientation, Random& random, int view = 0) const;
  /// Returns the first geometric operation that draws random numbers, or nullptr.
  const ImageOperation* random_geometry() const;
  /// Folds only the geometric operations, without the other ones that fold. For a program without
  /// random geometry.
  ResamplePlan plan_geometry(Size image, int orientation, int view = 0) const;
  /// The flips of those other operations: whether left and right, top and bottom are exchanged.
  /// `flips` draws the same random numbers as `plan`.
  struct Flips {
    bool mirrored = false;
    bool flipped = false;
  };
  Flips flips(Random& random) const;
  void run(SampleImage& image, Random& random) const;
  /// Returns the most memory that a sample's image of this program borrows of a `Scratch`.
  ScratchSizes scratch() const;
  /// Returns whether `run` leaves the pixels as they are, since all its operations run on the
  /// device.
  bool leaves_pixels() const;
  /// The fields that operations add to the sample.
  std::vector<FieldSpec> fields() const;

 private:
  Size output_;
  Like like_;
  std::vector<Operation> ops_;  // owns the operations that the others point to
  std::vector<const GeometricOperation*> geometric_;
  std::vector<const PixelOperation*> joined_;
  std::vector<const PixelOperation*> in_place_;
};

}  // namespace millrace
