// SPDX-License-Identifier: Apache-2.0
#include "view_parameters.h"

#include <algorithm>
#include <string>

#include "ops/program.h"
#include "targets/targets.h"

namespace millrace {
namespace {

constexpr int most_images = 64;

std::string view_place(std::string_view source, const std::string& field) {
  return std::string(source) + ": views: \"" + cut(field) + '"';
}

}  // namespace

std::vector<View> read_views(const RecipeJson& json, std::string_view source) {
  if (!json.is_object())
    refuse_parameter(source, "\"views\" must be an object in { }, with a member for each field");
  std::vector<View> views;
  for (const auto& [field, value] : json.items()) {
    View& view = views.emplace_back();
    view.field = field;
    const std::string place = view_place(source, field);
    ParameterReader reader(value, "the view", place);
    reader.integer("count", view.count, 1, most_images);
    reader.size("output", view.output);
    read_operations(reader, value.contains("output"), view.output, view.ops, place);
    reader.check_keys();
  }
  return views;
}

RecipeJson views_json(const std::vector<View>& views) {
  RecipeJson json = RecipeJson::object();
  for (const View& view : views) {
    RecipeJson& member = json[view.field];
    if (view.count != 1) member["count"] = view.count;
    member["output"] = {view.output.width, view.output.height};
    member["ops"] = operations_json(view.ops);
  }
  return json;
}

void check_views(const Recipe& recipe, std::string_view source) {
  if (recipe.views.empty()) return;
  if (recipe.mix)
    refuse_parameter(source, "\"mix\" mixes one image of a sample, and \"views\" makes more");
  if (has_moving(recipe.targets))
    refuse_parameter(source,
                     "\"views\" makes several images of a sample, but masks, boxes and keypoints "
                     "need one image");
  for (const View& view : recipe.views) {
    const std::string place = view_place(source, view.field);
    if (view.field.empty()) refuse_parameter(place, "a field must have a name");
    if (view.field == "image") refuse_parameter(place, "\"image\" is the recipe's own image");
    if (std::ranges::count(recipe.views, view.field, &View::field) > 1 ||
        std::ranges::count(recipe.targets, view.field, &Target::field) > 0)
      refuse_parameter(place, "the field comes twice");
    ParameterChecker checker(place);
    int count = view.count;
    checker.integer("count", count, 1, most_images);
    check_program(view.output, view.ops, place);
    if (views_of(view.ops) > 1)
      refuse_parameter(place, "the operations make " + std::to_string(views_of(view.ops)) +
                                  " images; a view's operations make one, \"count\" times");
    for (std::size_t number = 0; number < view.ops.size(); ++number)
      if (runs_on_device(view.ops[number]))
        refuse_parameter(place, place_of(view.ops, number) +
                                    " runs on the device, which converts the field \"image\" only");
  }
}

}  // namespace millrace
