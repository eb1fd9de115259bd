// SPDX-License-Identifier: Apache-2.0
#include "view_parameters.h"

#include <algorithm>
#include <string>

#include "ops/program.h"
#include "targets/targets.h"

namespace millrace {
namespace {

constexpr int max_images = 64;
constexpr const char* draws_names[] = {"same", "own"};  // names of `Draws`

std::string view_place(std::string_view source, const std::string& field) {
  return std::string(source) + ": views: \"" + cut(field) + '"';
}

std::string image_place(std::string_view source, const std::string& field) {
  return std::string(source) + ": images: \"" + cut(field) + '"';
}

/// Throws `Error` for operations on the device.
void refuse_device(std::span<const Operation> ops, const std::string& place) {
  for (std::size_t number = 0; number < ops.size(); ++number)
    if (runs_on_device(ops[number]))
      refuse_parameter(place, place_of(ops, number) +
                                  " runs on the device, which converts the field \"image\" only");
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
    reader.integer("count", view.count, 1, max_images);
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
    checker.integer("count", count, 1, max_images);
    check_program(view.output, view.ops, place);
    if (views_of(view.ops) > 1)
      refuse_parameter(place, "the operations make " + std::to_string(views_of(view.ops)) +
                                  " images; a view's operations make one, \"count\" times");
    refuse_device(view.ops, place);
  }
}

std::vector<RecordImage> read_record_images(const RecipeJson& json, std::string_view source) {
  if (!json.is_object())
    refuse_parameter(source, "\"images\" must be an object in { }, with a member for each field");
  std::vector<RecordImage> images;
  for (const auto& [field, value] : json.items()) {
    RecordImage& image = images.emplace_back(RecordImage{field});
    ParameterReader reader(value, "the image", image_place(source, field));
    reader.named("draws", image.draws, draws_names);
    reader.check_keys();
  }
  return images;
}

RecipeJson record_images_json(const std::vector<RecordImage>& images) {
  RecipeJson json = RecipeJson::object();
  for (const RecordImage& image : images) {
    RecipeJson& member = json[image.field] = RecipeJson::object();
    ParameterWriter writer(member);
    Draws draws = image.draws;
    writer.named("draws", draws, draws_names);
  }
  return json;
}

void check_record_images(const Recipe& recipe, std::string_view source) {
  if (recipe.images.empty()) return;
  if (recipe.images.size() >= max_images)
    refuse_parameter(source, "\"images\" has " + std::to_string(recipe.images.size()) +
                                 " members; a sample has at most " + std::to_string(max_images) +
                                 " encoded images, \"image\" among them");
  if (recipe.mix)
    refuse_parameter(source, "\"mix\" mixes one image of a sample, and \"images\" makes more");
  for (const RecordImage& image : recipe.images) {
    const std::string place = image_place(source, image.field);
    if (image.field.empty()) refuse_parameter(place, "a field must have a name");
    if (image.field == "image") refuse_parameter(place, "\"image\" is in every sample already");
    if (std::ranges::count(recipe.images, image.field, &RecordImage::field) > 1 ||
        std::ranges::count(recipe.views, image.field, &View::field) > 0 ||
        std::ranges::count(recipe.targets, image.field, &Target::field) > 0)
      refuse_parameter(place, "the field comes twice");
    ParameterChecker checker(place);
    Draws draws = image.draws;
    checker.named("draws", draws, draws_names);
    refuse_device(recipe.ops, place);
  }
}

}  // namespace millrace
