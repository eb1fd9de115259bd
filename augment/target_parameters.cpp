// SPDX-License-Identifier: Apache-2.0
#include "target_parameters.h"

#include <algorithm>
#include <array>
#include <string>

#include "parameter_visitors.h"
#include "targets/targets.h"

namespace millrace {
namespace {

/// Names in the order of the variant in `Target`.
constexpr const char* target_kinds[] = {"mask", "boxes", "keypoints", "values", "stored"};
/// Names of `BoxFormat` and of `CoordinateUnit`.
constexpr const char* box_formats[] = {"xyxy", "xywh", "cxcywh"};
constexpr const char* coordinate_units[] = {"pixels", "fractions"};

/// Describes a dtype, one of `dtypes`; the first one is the default.
template <std::size_t count>
void describe_dtype(Parameters& parameters, DType& dtype, const std::array<DType, count>& dtypes) {
  std::array<const char*, count> names{};
  std::ranges::transform(dtypes, names.begin(), [](DType one) { return to_string(one); });
  const auto before = static_cast<std::size_t>(std::ranges::find(dtypes, dtype) - dtypes.begin());
  std::size_t place = before;
  parameters.choice("dtype", place, names);
  if (place != before) dtype = dtypes[place];
}

void describe(Parameters& parameters, MaskTarget& mask) {
  describe_dtype(parameters, mask.dtype, std::array{DType::uint8, DType::uint16});
  parameters.integer("fill", mask.fill, 0, mask.dtype == DType::uint8 ? 255 : 65535);
}

void describe(Parameters& parameters, BoxesTarget& boxes) {
  parameters.integer("max_length", boxes.max_length, 1, max_target_values);
  parameters.named("format", boxes.format, box_formats);
  parameters.named("unit", boxes.unit, coordinate_units);
  parameters.number("min_size", boxes.min_size, {0, largest_side});
  parameters.number("min_area", boxes.min_area, {0, 1e9});
}

void describe(Parameters& parameters, KeypointsTarget& points) {
  parameters.integer("max_length", points.max_length, 1, max_target_values);
  parameters.integer("points", points.points, 1, 100'000);
  parameters.integer("values", points.values, 2, 3);
  parameters.named("unit", points.unit, coordinate_units);
  parameters.name("of", points.of);
}

void describe(Parameters& parameters, ValuesTarget& values) {
  describe_dtype(parameters, values.dtype,
                 std::array{DType::int64, DType::uint8, DType::int8, DType::uint16, DType::int16,
                            DType::uint32, DType::int32, DType::uint64, DType::float16,
                            DType::bfloat16, DType::float32, DType::float64, DType::boolean});
  static constexpr NumberList extents{.what = "one to three integers, the extents",
                                      .counts = {1, 2, 3},
                                      .limits = {1, max_target_values},
                                      .whole = true};
  std::vector<double> shape(values.shape.extents().begin(), values.shape.extents().end());
  const std::vector<double> before = shape;
  parameters.numbers("shape", shape, extents);
  if (shape != before) {
    Shape read;
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent)
      read = read.with_outer(static_cast<std::size_t>(*extent));
    values.shape = read;
  }
  parameters.integer("max_length", values.max_length, 0, max_target_values);
  parameters.name("of", values.of);
}

void describe(Parameters&, StoredTarget&) {}

void describe_target(Parameters& parameters, Target& target) {
  std::visit([&](auto& kind) { describe(parameters, kind); }, target.is);
}

/// Sets the kind of the target, by the variant's index. `describe_target` reads the other members.
void set_kind(Target& target, std::size_t kind) {
  switch (kind) {
    case 0:
      target.is = MaskTarget{};
      return;
    case 1:
      target.is = BoxesTarget{};
      return;
    case 2:
      target.is = KeypointsTarget{};
      return;
    case 3:
      target.is = ValuesTarget{};
      return;
    default:
      target.is = StoredTarget{};
  }
}

std::string target_place(std::string_view source, const std::string& field) {
  return std::string(source) + ": targets: \"" + cut(field) + '"';
}

/// Throws `Error` if the target's `of` does not name boxes of the recipe. Also throws it if values
/// with `of` have a `max_length` of their own.
void check_owner(const std::vector<Target>& targets, const Target& target,
                 const std::string& place) {
  const std::string of = owner_of(target);
  if (of.empty()) return;
  if (boxes_named(targets, of) == nullptr)
    refuse_parameter(place, "\"of\" is \"" + cut(of) + "\", must name boxes among the targets");
  if (const auto* values = std::get_if<ValuesTarget>(&target.is);
      values != nullptr && values->max_length != 0)
    refuse_parameter(place, "\"max_length\" is " + std::to_string(values->max_length) +
                                "; leave it out, since the boxes that these are \"of\" have one");
}

/// Throws `Error` for operations that move an image's pixels in a way that targets cannot follow.
void check_operations(const Recipe& recipe, std::string_view source) {
  const bool has_coordinates = std::ranges::any_of(recipe.targets, [](const Target& target) {
    return std::holds_alternative<BoxesTarget>(target.is) ||
           std::holds_alternative<KeypointsTarget>(target.is);
  });
  for (std::size_t number = 0; number < recipe.ops.size(); ++number) {
    const auto refuse_operation = [&](const char* why) {
      refuse_parameter(source, place_of(recipe.ops, number) + " " + why);
    };
    const Operation& op = recipe.ops[number];
    if (has_coordinates && operation_json(op).contains("padding_mode"))
      refuse_operation(
          "mirrors or repeats the image in a border, where boxes and keypoints cannot follow; take "
          "\"padding_mode\": \"constant\"");
    if (flips_on_device(op))
      refuse_operation(
          "flips images on the device, where masks, boxes and keypoints do not follow");
    if (moves_alone(op))
      refuse_operation("moves pixels, and masks, boxes and keypoints cannot follow it");
  }
  if (const int views = views_of(recipe.ops); views > 1)
    refuse_parameter(source,
                     "the operations make " + std::to_string(views) +
                         " images of a sample, but masks, boxes and keypoints need one image");
}

}  // namespace

std::vector<Target> read_targets(const RecipeJson& json, std::string_view source) {
  if (!json.is_object())
    refuse_parameter(source, "\"targets\" must be an object in { }, with a member for each field");
  std::vector<Target> targets;
  for (const auto& [field, value] : json.items()) {
    Target& target = targets.emplace_back(Target{field, ValuesTarget{}});
    ParameterReader reader(value, "the target", target_place(source, field));
    std::size_t kind = std::size(target_kinds);
    reader.choice("is", kind, target_kinds);
    if (kind == std::size(target_kinds))
      refuse_parameter(target_place(source, field),
                       "\"is\" is missing, must be " + quoted_names(target_kinds, " or "));
    set_kind(target, kind);
    describe_target(reader, target);
    reader.check_keys();
  }
  return targets;
}

RecipeJson targets_json(const std::vector<Target>& targets) {
  RecipeJson json = RecipeJson::object();
  for (Target target : targets) {
    RecipeJson& member = json[target.field];
    member["is"] = target_kinds[target.is.index()];
    ParameterWriter writer(member);
    describe_target(writer, target);
  }
  return json;
}

void check_targets(const Recipe& recipe, std::string_view source) {
  for (const Target& target : recipe.targets) {
    const std::string place = target_place(source, target.field);
    if (target.field.empty()) refuse_parameter(place, "a field must have a name");
    if (target.field == "image") refuse_parameter(place, "\"image\" is the image's own field");
    if (std::ranges::count(recipe.targets, target.field, &Target::field) > 1)
      refuse_parameter(place, "the field comes twice");
    ParameterChecker checker(place);
    Target checked = target;
    describe_target(checker, checked);
    check_owner(recipe.targets, target, place);
  }
  if (has_moving(recipe.targets)) {
    check_operations(recipe, source);
    if (recipe.mix)
      refuse_parameter(source,
                       "\"mix\" mixes images and labels, and cannot mix masks, boxes and "
                       "keypoints");
  }
  const auto is_integer_label = [](const Target& target) {
    return target == Target{"label", ValuesTarget{}} || target == Target{"label", StoredTarget{}};
  };
  if (recipe.mix && std::ranges::none_of(recipe.targets, is_integer_label))
    refuse_parameter(source, "\"mix\" needs the target \"label\", an int64");
}

}  // namespace millrace
