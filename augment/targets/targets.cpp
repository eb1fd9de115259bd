// SPDX-License-Identifier: Apache-2.0
#include "targets/targets.h"

#include <algorithm>

namespace millrace {
namespace {

template <typename... Calls>
struct CallByKind : Calls... {
  using Calls::operator()...;
};
template <typename... Calls>
CallByKind(Calls...) -> CallByKind<Calls...>;

bool moves(const Target& target) {
  return !std::holds_alternative<ValuesTarget>(target.is) &&
         !std::holds_alternative<StoredTarget>(target.is);
}

Status with_field(const std::string& field, const Status& status) {
  return status.is_ok() ? Status::ok()
                        : Status::bad("its field \"" + field + "\" " + status.reason());
}

std::span<const std::byte> field_of(const Record& record, const std::string& field) {
  try {
    return record[field];
  } catch (const Error& error) {
    throw Error(error.code(),
                error.reason() + "; leave \"" + field +
                    "\" out of the recipe's \"targets\" (\"targets\": {} makes samples of the "
                    "image alone)",
                error.stage(), error.record());
  }
}

}  // namespace

bool has_moving(const std::vector<Target>& targets) { return std::ranges::any_of(targets, moves); }

std::string owner_of(const Target& target) {
  if (const auto* points = std::get_if<KeypointsTarget>(&target.is)) return points->of;
  if (const auto* values = std::get_if<ValuesTarget>(&target.is)) return values->of;
  return {};
}

const BoxesTarget* boxes_named(const std::vector<Target>& targets, std::string_view name) {
  const auto found = std::ranges::find(targets, name, &Target::field);
  return found == targets.end() ? nullptr : std::get_if<BoxesTarget>(&found->is);
}

std::vector<FieldSpec> fields_of(const std::vector<Target>& targets, Size output) {
  std::vector<FieldSpec> fields;
  for (const Target& target : targets) {
    const BoxesTarget* const owner = boxes_named(targets, owner_of(target));
    const auto length = [&](int own) {
      return static_cast<std::size_t>(owner != nullptr ? owner->max_length : own);
    };
    FieldSpec field;
    field.name = target.field;
    std::visit(CallByKind{[&](const MaskTarget& mask) {
                            field.dtype = mask.dtype;
                            field.shape = {static_cast<std::size_t>(output.height),
                                           static_cast<std::size_t>(output.width)};
                          },
                          [&](const BoxesTarget& boxes) {
                            field.dtype = DType::float32;
                            field.shape = {length(boxes.max_length), 4};
                            field.variable = true;
                          },
                          [&](const KeypointsTarget& points) {
                            field.dtype = DType::float32;
                            field.shape = {static_cast<std::size_t>(points.values)};
                            if (points.points > 1)
                              field.shape =
                                  field.shape.with_outer(static_cast<std::size_t>(points.points));
                            field.shape = field.shape.with_outer(length(points.max_length));
                            field.variable = true;
                          },
                          [&](const ValuesTarget& values) {
                            field.dtype = values.dtype;
                            field.shape = values.shape;
                            field.variable = owner != nullptr || values.max_length > 0;
                            if (field.variable)
                              field.shape = field.shape.with_outer(length(values.max_length));
                          },
                          [&](const StoredTarget&) { field.dtype = DType::int64; }},
               target.is);
    fields.push_back(std::move(field));
  }
  return fields;
}

std::size_t bytes_of_targets(const std::vector<Target>& targets, Size output) {
  const std::size_t pixels =
      static_cast<std::size_t>(output.width) * static_cast<std::size_t>(output.height);
  std::size_t bytes = 0;
  for (const FieldSpec& field : fields_of(targets, output)) {
    const Target& target = *std::ranges::find(targets, field.name, &Target::field);
    // A mask has two bytes for each value, and is warped from an RGB image into another one.
    if (std::holds_alternative<MaskTarget>(target.is))
      bytes += DecodeBudget::small_bytes + (2 + 2 * 3) * pixels;
    // Boxes and keypoints are copied. A list that grows is copied into one of up to twice its
    // length, and boxes have a list of those that are kept.
    else if (moves(target))
      bytes += 4 * field.shape.elements() * size_of(field.dtype);
  }
  return bytes;
}

TargetWorkers::TargetWorkers(const std::vector<Target>& targets, std::size_t first_field,
                             const std::shared_ptr<DecodeBudget>& budget)
    : first_field_(first_field), move_(has_moving(targets)) {
  for (const Target& target : targets) {
    const auto owner = std::ranges::find(targets, owner_of(target), &Target::field);
    all_.push_back(
        {.field = target.field,
         .worker = std::visit(
             CallByKind{[&](const MaskTarget& mask) { return make_mask_worker(mask, budget); },
                        [](const BoxesTarget& boxes) { return make_boxes_worker(boxes); },
                        [](const KeypointsTarget& points) { return make_keypoints_worker(points); },
                        [](const ValuesTarget& values) { return make_values_worker(values); },
                        [](const StoredTarget&) { return make_values_worker(ValuesTarget{}); }},
             target.is),
         .owner = owner == targets.end() ? all_.size()
                                         : static_cast<std::size_t>(owner - targets.begin())});
  }
}

Status TargetWorkers::read(const Record& record) {
  for (const One& one : all_)
    if (Status taken = one.worker->read(field_of(record, one.field)); !taken.is_ok())
      return with_field(one.field, taken);
  return Status::ok();
}

Status TargetWorkers::place(Size stored, const ResamplePlan& plan) {
  for (const One& one : all_)
    if (Status placed = one.worker->place(stored, plan); !placed.is_ok())
      return with_field(one.field, placed);
  return Status::ok();
}

void TargetWorkers::warp(const AffineMap& map) {
  for (const One& one : all_) one.worker->warp(map);
}

void TargetWorkers::warp(const PerspectiveMap& map) {
  for (const One& one : all_) one.worker->warp(map);
}

void TargetWorkers::rotate(double degrees) {
  for (const One& one : all_) one.worker->rotate(degrees);
}

Status TargetWorkers::write(Sample& sample) {
  // Writes owned targets last, since they need to know which boxes of their owner are kept.
  for (const bool is_owned : {false, true})
    for (std::size_t place = 0; place < all_.size(); ++place)
      if ((all_[place].owner != place) == is_owned)
        if (Status written = write_one(place, sample); !written.is_ok())
          return with_field(all_[place].field, written);
  return Status::ok();
}

Status TargetWorkers::write_one(std::size_t place, Sample& sample) {
  const One& one = all_[place];
  return one.worker->write(sample, first_field_ + place, all_[one.owner].worker->kept());
}

}  // namespace millrace
