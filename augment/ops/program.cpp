// SPDX-License-Identifier: Apache-2.0
#include "ops/program.h"

#include <algorithm>
#include <optional>

namespace millrace {
namespace {

const GeometricOperation* as_geometric(const Operation& op) {
  return dynamic_cast<const GeometricOperation*>(&op.implementation());
}

const PixelOperation* as_in_place(const Operation& op) {
  return dynamic_cast<const PixelOperation*>(&op.implementation());
}

}  // namespace

bool flips_on_device(const Operation& op) {
  const PixelOperation* pixels = as_in_place(op);
  return pixels != nullptr && std::ranges::any_of(pixels->fields(), [](const FieldSpec& field) {
           return !field.flipped_image.empty();
         });
}

bool moves_alone(const Operation& op) {
  const PixelOperation* pixels = as_in_place(op);
  return pixels != nullptr && pixels->moves_alone();
}

std::string place_of(std::span<const Operation> ops, std::size_t number) {
  return "ops[" + std::to_string(number) + "] (" + ops[number].implementation().name() + ")";
}

std::string order_problem(std::span<const Operation> ops) {
  const Size any_size{256, 256};
  ResamplePlan plan(any_size, 1, any_size, Like{});
  Random random(0, 0);
  std::optional<std::size_t> makes_output;
  std::optional<std::size_t> on_device;
  std::optional<std::size_t> in_place;
  for (std::size_t number = 0; number < ops.size(); ++number) {
    const std::string place = place_of(ops, number);
    if (on_device && !(runs_on_device(ops[number]) && !flips_on_device(ops[number])))
      return place + " comes after " + place_of(ops, *on_device) +
             ", which runs on the device; only other operations on the device may follow, a flip "
             "before the others";
    const GeometricOperation* geometric = as_geometric(ops[number]);
    if (geometric == nullptr) {
      if (!makes_output)
        return place + " comes before the image has the output's size; begin with " +
               "random_resized_crop, or with resize and center_crop";
      const PixelOperation& pixels = *as_in_place(ops[number]);
      if (pixels.joins_resampling() && in_place)
        return place + " comes after " + place_of(ops, *in_place) +
               ", which runs on pixels; flips must come before";
      if (!pixels.joins_resampling()) in_place = number;
      if (runs_on_device(ops[number])) on_device = number;
      if (on_device && views_of(ops) > 1)
        return place + " runs on the device, which takes one image of a sample, and " +
               place_of(ops, *makes_output) + " makes " + std::to_string(views_of(ops));
      continue;
    }
    if (makes_output && number != *makes_output + 1)
      return place + " comes after " + place_of(ops, *makes_output + 1) +
             ", which runs on pixels; geometric operations must come first";
    if (makes_output)
      return place + " cannot be folded with " + place_of(ops, *makes_output) +
             ", which makes the output already";
    if (const char* reason = geometric->plan(plan, random); reason != nullptr)
      return place + " cannot be folded with the operations before it: " + reason;
    if (geometric->makes_output()) makes_output = number;
  }
  if (!makes_output)
    return "no operation makes an image of the output's size; random_resized_crop, random_crop and "
           "center_crop do";
  return {};
}

int views_of(std::span<const Operation> ops) {
  int views = 1;
  for (const Operation& op : ops)
    if (const GeometricOperation* geometric = as_geometric(op)) views *= geometric->views();
  return views;
}

bool runs_on_device(const Operation& op) {
  const PixelOperation* pixels = as_in_place(op);
  return pixels != nullptr && !pixels->fields().empty();
}

const char* nesting_problem(const Operation& op) {
  const PixelOperation* pixels = as_in_place(op);
  if (pixels == nullptr) return "moves or scales pixels, and only a recipe's list may have it";
  if (pixels->joins_resampling() || runs_on_device(op))
    return "is not an operation on pixels alone, and only a recipe's list may have it";
  return nullptr;
}

ScratchSizes scratch_of(std::span<const Operation> ops, Size size) {
  ScratchSizes sizes;
  for (const Operation& op : ops)
    if (const PixelOperation* pixels = as_in_place(op)) enlarge(sizes, pixels->scratch(size));
  return sizes;
}

Program::Program(Size output, std::span<const Operation> ops, Like like)
    : output_(output), like_(like), ops_(ops.begin(), ops.end()) {
  for (const Operation& op : ops_) {
    if (const GeometricOperation* geometric = as_geometric(op)) geometric_.push_back(geometric);
    if (const PixelOperation* pixels = as_in_place(op))
      (pixels->joins_resampling() ? joined_ : in_place_).push_back(pixels);
  }
}

bool Program::needs_orientation() const {
  return std::ranges::any_of(geometric_, &GeometricOperation::needs_orientation);
}

int Program::views() const { return views_of(ops_); }

ResamplePlan Program::plan(Size image, int orientation, Random& random, int view) const {
  ResamplePlan plan(image, orientation, output_, like_);
  plan.view = view;
  for (const GeometricOperation* op : geometric_) (void)op->plan(plan, random);
  for (const PixelOperation* op : joined_) op->plan(plan, random);
  return plan;
}

const ImageOperation* Program::random_geometry() const {
  const auto found = std::ranges::find_if(geometric_, &GeometricOperation::is_random);
  return found != geometric_.end() ? *found : nullptr;
}

ResamplePlan Program::plan_geometry(Size image, int orientation, int view) const {
  Random none(0, 0);
  ResamplePlan plan(image, orientation, output_, like_);
  plan.view = view;
  for (const GeometricOperation* op : geometric_) (void)op->plan(plan, none);
  return plan;
}

Program::Flips Program::flips(Random& random) const {
  ResamplePlan plan(output_, 1, output_, like_);
  for (const PixelOperation* op : joined_) op->plan(plan, random);
  return {plan.resampling.mirrored, plan.resampling.flipped};
}

void Program::run(SampleImage& image, Random& random) const {
  for (const PixelOperation* op : in_place_) op->run(image, random);
}

ScratchSizes Program::scratch() const {
  ScratchSizes sizes = scratch_of(ops_, output_);
  // A border that repeats pixels may need a window that has no place in the output. Neighbours in
  // the output are the same or neighbours in the window, so it is not larger.
  if (std::ranges::any_of(geometric_, &GeometricOperation::repeats_pixels))
    enlarge(sizes, {rgb_bytes(output_)});
  return sizes;
}

bool Program::leaves_pixels() const {
  return std::ranges::none_of(in_place_,
                              [](const PixelOperation* op) { return op->fields().empty(); });
}

std::vector<FieldSpec> Program::fields() const {
  std::vector<FieldSpec> fields;
  for (const PixelOperation* op : in_place_)
    for (FieldSpec& field : op->fields()) fields.push_back(std::move(field));
  return fields;
}

}  // namespace millrace
