// SPDX-License-Identifier: Apache-2.0
//
// Derives the targets of a recipe from the records of a dataset.
#include <millrace/detail/seen_fields.h>
#include <millrace/error.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "targets/targets.h"

namespace millrace {
namespace {

bool is_stored(const Target& target) { return std::holds_alternative<StoredTarget>(target.is); }

bool is_integer(const FieldSpec& spec) {
  return spec.dtype == DType::int64 && spec.shape.rank() == 0;
}

/// Returns whether each stored target is an integer, either because the dataset says so or because
/// the first record has one.
bool begins_with_integers(const Dataset& dataset, std::vector<Target> targets) {
  std::erase_if(targets, [](const Target& target) { return !is_stored(target); });
  for (const FieldSpec& spec : dataset.field_specs()) {
    const auto found = std::ranges::find(targets, spec.name, &Target::field);
    if (found == targets.end()) continue;
    if (!is_integer(spec)) return false;
    targets.erase(found);
  }
  if (targets.empty() || dataset.size() == 0) return true;
  const auto reader = dataset.make_reader();
  if (reader == nullptr) return true;
  try {
    const Record record = reader->read(0);
    return std::ranges::all_of(targets, [&](const Target& target) {
      return record.has(target.field) && holds_integer(record[target.field]);
    });
  } catch (const Error&) {
    return false;  // other records may be readable
  }
}

/// Returns nullopt for an int64, since a `StoredTarget` is one already. Also returns nullopt for an
/// unknown length.
std::optional<ValuesTarget> values_of(const FieldSpec& spec) {
  if (is_integer(spec)) return std::nullopt;
  ValuesTarget target{.dtype = spec.dtype, .shape = spec.shape};
  if (!spec.variable) return target;
  if (spec.shape[0] == 0) return std::nullopt;
  target.max_length = static_cast<int>(std::min<std::size_t>(spec.shape[0], max_target_values));
  target.shape = Shape();
  for (std::size_t dimension = spec.shape.rank(); dimension-- > 1;)
    target.shape = target.shape.with_outer(spec.shape[dimension]);
  return target;
}

Recipe with_fields(const Recipe& recipe, const std::vector<FieldSpec>& specs) {
  Recipe fitted = recipe;
  fitted.targets.clear();
  for (const Target& target : recipe.targets) {
    const auto spec = std::ranges::find(specs, target.field, &FieldSpec::name);
    if (is_stored(target) && spec == specs.end()) continue;
    Target& added = fitted.targets.emplace_back(target);
    if (!is_stored(target)) continue;
    if (auto values = values_of(*spec)) added.is = *std::move(values);
  }
  return fitted;
}

}  // namespace

Recipe recipe_for(const Recipe& recipe, const Dataset& dataset) {
  if (std::ranges::none_of(recipe.targets, is_stored)) return recipe;
  std::vector<FieldSpec> specs;
  try {
    if (begins_with_integers(dataset, recipe.targets)) return recipe;
    specs = seen_field_specs(dataset);
  } catch (...) {
    return recipe;  // the run reads the same records and reports the error
  }
  if (specs.empty()) return recipe;
  Recipe fitted = with_fields(recipe, specs);
  const Target stored_label{"label", StoredTarget{}};
  if (recipe.mix && std::ranges::count(recipe.targets, stored_label) > 0 &&
      std::ranges::count(fitted.targets, stored_label) == 0)
    throw Error(ErrorCode::invalid_argument,
                dataset.name() +
                    ": the records have no integer \"label\", which the recipe's \"mix\" needs; "
                    "leave \"mix\" out of the recipe");
  return fitted;
}

}  // namespace millrace
