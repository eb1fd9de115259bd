// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <nlohmann/json.hpp>

#include "mix_parameters.h"
#include "ops/operations.h"
#include "ops/program.h"
#include "parameter_visitors.h"
#include "target_parameters.h"
#include "view_parameters.h"

namespace millrace {

void check_operation(const Operation& operation, const std::string& place) {
  ParameterChecker checker(place);
  operation.implementation().describe(checker);
}

namespace {

constexpr const char* versions[] = {"pillow-13", "pillow-12"};  // names of `Like`
constexpr const char* resolutions[] = {"exact", "reduced"};     // names of `Resolution`
constexpr const char* places[] = {"worker", "device"};          // names of `DecodeOn`

}  // namespace

void check_mix(const Mix& mix, std::string_view source) {
  ParameterChecker checker(source);
  Mix checked = mix;
  describe(checker, checked);
  if (mix.mixup <= 0 && mix.cutmix <= 0)
    refuse_parameter(source, "\"mixup\" and \"cutmix\" are both 0, and nothing is mixed");
}

void check_program(Size output, const std::vector<Operation>& ops, std::string_view source) {
  ParameterChecker checker(source);
  int sides[] = {output.width, output.height};
  for (int& side : sides) checker.integer("output", side, 1, largest_side);
  for (std::size_t number = 0; number < ops.size(); ++number)
    check_operation(ops[number], std::string(source) + ": " + place_of(ops, number));
  if (const std::string problem = order_problem(ops); !problem.empty())
    refuse_parameter(source, problem);
}

namespace {

/// Throws `Error` if the device decodes and the recipe has parts that exclude this.
void check_device(const Recipe& recipe, std::string_view source) {
  if (recipe.decode_on != DecodeOn::device) return;
  const auto refuse = [&](const std::string& why) {
    refuse_parameter(source, "\"decode_on\" is \"device\", and " + why);
  };
  if (!recipe.views.empty())
    refuse("\"views\" makes more than the one image that the device makes");
  if (!recipe.images.empty())
    refuse("\"images\" makes more than the one image that the device makes");
  if (const int views = views_of(recipe.ops); views > 1)
    refuse("the operations make " + std::to_string(views) + " images; the device makes one");
  if (recipe.resolution != Resolution::exact)
    refuse(
        "\"resolution\" is not \"exact\"; the device decodes only at the image's own resolution");
  if (recipe.mix && recipe.mix->on == MixOn::worker)
    refuse(
        "\"mix\" runs on a worker, which does not have the pixels; set its \"on\" to \"device\"");
}

void check(const Recipe& recipe, std::string_view source) {
  ParameterChecker checker(source);
  Like like = recipe.like;
  checker.named("like", like, versions);
  Resolution resolution = recipe.resolution;
  checker.named("resolution", resolution, resolutions);
  DecodeOn decode_on = recipe.decode_on;
  checker.named("decode_on", decode_on, places);
  double device_share = recipe.device_share;
  checker.number("device_share", device_share, {0, 1});
  check_program(recipe.output, recipe.ops, source);
  check_targets(recipe, source);
  check_views(recipe, source);
  check_record_images(recipe, source);
  check_device(recipe, source);
  if (!recipe.mix) return;
  check_mix(*recipe.mix, std::string(source) + ": mix");
  if (const int views = views_of(recipe.ops); views > 1)
    refuse_parameter(source, "\"mix\" mixes one image of a sample, and the operations make " +
                                 std::to_string(views));
  for (std::size_t number = 0; number < recipe.ops.size(); ++number)
    if (recipe.mix->on == MixOn::worker && runs_on_device(recipe.ops[number]))
      refuse_parameter(source, place_of(recipe.ops, number) +
                                   " runs on the device, and \"mix\" before it on " +
                                   "a worker; let both run on one of them");
}

Operation make_operation(const RecipeJson* name, ParameterReader& reader) {
  std::vector<const char*> names;
  for (const OperationRow& row : operations) {
    if (name != nullptr && *name == row.name) return row.make();
    names.push_back(row.name);
  }
  reader.fail("op", name == nullptr ? RecipeJson() : *name, "one of " + quoted_names(names, ", "));
}

}  // namespace

Operation read_operation(const RecipeJson& json, const std::string& place,
                         std::optional<Size>& output) {
  ParameterReader unnamed(json, "the operation", place);
  Operation operation = make_operation(unnamed.find("op"), unnamed);
  ParameterReader reader(json, "the operation",
                         place + " (" + operation.implementation().name() + ")");
  reader.find("op");
  operation.implementation().describe(reader);
  reader.check_keys();
  if (reader.given_output()) output = reader.given_output();
  return operation;
}

RecipeJson operation_json(const Operation& operation) {
  RecipeJson json{{"op", operation.implementation().name()}};
  ParameterWriter writer(json);
  operation.implementation().describe(writer);
  return json;
}

RecipeJson operations_json(std::span<const Operation> ops) {
  RecipeJson json = RecipeJson::array();
  for (const Operation& operation : ops) json.push_back(operation_json(operation));
  return json;
}

void read_operations(ParameterReader& reader, bool has_output, Size& output,
                     std::vector<Operation>& ops, std::string_view source) {
  const RecipeJson* const list = reader.find("ops");
  if (list == nullptr) return;
  if (!list->is_array()) refuse_parameter(source, "\"ops\" must be a list of operations in [ ]");
  ops.clear();
  std::string earlier;  // the key that gave the output's size
  if (has_output)
    earlier = reader.what() + std::string(" \"output\" [") + std::to_string(output.width) + "," +
              std::to_string(output.height) + "]";
  for (const RecipeJson& op : *list) {
    std::optional<Size> given;
    ops.push_back(
        read_operation(op, std::string(source) + ": " + member_place("ops", ops.size()), given));
    if (!given) continue;
    const std::string place = place_of(ops, ops.size() - 1);
    const std::string size = "\"size\" " + std::to_string(given->width);
    if (!earlier.empty() && *given != output)
      refuse_parameter(source, place + " has " + size + " and " + earlier + "; leave one out");
    if (earlier.empty()) earlier = place + ' ' + size;
    output = *given;
  }
}

std::string Operation::to_json() const { return operation_json(*this).dump(); }

Recipe Recipe::from_json(std::string_view json, std::string_view source) {
  if (const std::string problem = json_problem(json); !problem.empty())
    refuse_parameter(source, problem);
  const RecipeJson parsed = RecipeJson::parse(json);
  ParameterReader reader(parsed, "the recipe", std::string(source));
  for (const char* key : {"crop", "flip", "flip_on"})
    if (parsed.contains(key))
      refuse_parameter(source, '"' + std::string(key) +
                                   "\" is no longer a key; a recipe is a list of " +
                                   "operations now, as " + Recipe().to_json());
  Recipe recipe;
  reader.size("output", recipe.output);
  reader.named("like", recipe.like, versions);
  reader.named("resolution", recipe.resolution, resolutions);
  reader.named("decode_on", recipe.decode_on, places);
  reader.number("device_share", recipe.device_share, {0, 1});
  read_operations(reader, parsed.contains("output"), recipe.output, recipe.ops, source);
  if (const RecipeJson* targets = reader.find("targets"))
    recipe.targets = read_targets(*targets, source);
  if (const RecipeJson* views = reader.find("views")) recipe.views = read_views(*views, source);
  if (const RecipeJson* images = reader.find("images"))
    recipe.images = read_record_images(*images, source);
  if (const RecipeJson* mix = reader.find("mix")) {
    ParameterReader mix_reader(*mix, "mix", std::string(source) + ": mix");
    describe(mix_reader, recipe.mix.emplace());
    mix_reader.check_keys();
  }
  reader.check_keys();
  check(recipe, source);
  return recipe;
}

std::string Recipe::to_json() const {
  RecipeJson json;
  json["output"] = {output.width, output.height};
  json["like"] = versions[static_cast<std::size_t>(like)];
  if (resolution != Resolution::exact)
    json["resolution"] = resolutions[static_cast<std::size_t>(resolution)];
  if (decode_on != DecodeOn::worker)
    json["decode_on"] = places[static_cast<std::size_t>(decode_on)];
  if (device_share != 1) json["device_share"] = device_share;
  json["ops"] = operations_json(ops);
  if (targets != Recipe().targets) json["targets"] = targets_json(targets);
  if (!views.empty()) json["views"] = views_json(views);
  if (!images.empty()) json["images"] = record_images_json(images);
  if (mix) {
    ParameterWriter writer(json["mix"]);
    Mix written = *mix;
    describe(writer, written);
  }
  return json.dump();
}

void Recipe::validate() const { check(*this, "recipe"); }

}  // namespace millrace
