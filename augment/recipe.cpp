// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int largest_side = 16384;
constexpr double steepest_ratio = 1000;

[[noreturn]] void fail(std::string_view source, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, std::string(source) + ": " + problem);
}

/// A number as JSON writes it: the shortest that reads back the same. Not "null" for what JSON
/// cannot say.
std::string text(double value) {
  return std::isfinite(value) ? Json(value).dump() : std::to_string(value);
}

void check_side(std::string_view source, const char* key, std::int64_t value) {
  if (value < 1 || value > largest_side)
    fail(source, '"' + std::string(key) + "\" is " + std::to_string(value) + ", must lie in 1.." +
                     std::to_string(largest_side));
}

void check_range(std::string_view source, const std::string& key, Range range, double low,
                 double high) {
  const std::string is = '"' + key + "\" is [" + text(range.low) + ", " + text(range.high) + "], ";
  if (!(range.low >= low && range.low <= high && range.high >= low && range.high <= high))
    fail(source, is + "both must lie in " + text(low) + ".." + text(high));
  if (range.low > range.high) fail(source, is + "the first must not be above the second");
}

void check(const Recipe& recipe, std::string_view source) {
  check_side(source, "output", recipe.output.width);
  check_side(source, "output", recipe.output.height);
  if (const auto* crop = std::get_if<RandomResizedCrop>(&recipe.crop)) {
    check_range(source, "crop.scale", crop->scale, 0, 1);
    if (crop->scale.high <= 0) fail(source, "\"crop.scale\" is [0, 0], the second must be above 0");
    check_range(source, "crop.ratio", crop->ratio, 1 / steepest_ratio, steepest_ratio);
  }
  if (const auto* crop = std::get_if<CenterCrop>(&recipe.crop))
    check_side(source, "crop.resize", crop->resize);
  if (!(recipe.flip >= 0 && recipe.flip <= 1))
    fail(source, "\"flip\" is " + text(recipe.flip) + ", must lie in 0..1");
}

/// One JSON object whose members are taken by name; what is left over at the end is unknown.
class Members {
 public:
  Members(const Json& object, std::string path, std::string_view source)
      : object_(object), path_(std::move(path)), source_(source) {
    if (!object.is_object())
      fail(source,
           (path_.empty() ? "the recipe" : '"' + path_ + '"') + " must be an object in { }");
  }

  void check_keys(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      std::string names;
      for (const std::string_view name : known)
        names += (names.empty() ? "\"" : ", \"") + std::string(name) + '"';
      fail(source_, "unknown key \"" + name_of(key) + "\"; there are " + names);
    }
  }

  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void read(const char* key, double& into) const {
    if (const Json* value = find(key)) into = number(*value, key, "a number");
  }
  void read(const char* key, int& into) const {
    if (const Json* value = find(key)) into = side(*value, key, "an integer");
  }
  void read(const char* key, Range& into) const {
    constexpr const char* what = "two numbers, [low, high]";
    if (const Json* value = find(key))
      into = {number(pair(*value, key, what)[0], key, what), number((*value)[1], key, what)};
  }
  void read(const char* key, Size& into) const {
    constexpr const char* what = "two integers, [width, height]";
    if (const Json* value = find(key))
      into = {side(pair(*value, key, what)[0], key, what), side((*value)[1], key, what)};
  }

  [[noreturn]] void fail_value(const char* key, const Json& value, const std::string& what) const {
    fail(source_, '"' + name_of(key) + "\" is " +
                      value.dump(-1, ' ', false, Json::error_handler_t::replace) + ", must be " +
                      what);
  }

 private:
  std::string name_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + '.' + std::string(key);
  }

  const Json& pair(const Json& value, const char* key, const char* what) const {
    if (!value.is_array() || value.size() != 2) fail_value(key, value, what);
    return value;
  }
  double number(const Json& value, const char* key, const char* what) const {
    if (!value.is_number()) fail_value(key, value, what);
    return value.get<double>();
  }
  int side(const Json& value, const char* key, const char* what) const {
    if (!value.is_number_integer()) fail_value(key, value, what);
    const double wide = value.get<double>();
    if (wide < 1 || wide > largest_side)
      fail_value(key, value, "in 1.." + std::to_string(largest_side));
    return value.get<int>();
  }

  const Json& object_;
  std::string path_;
  std::string_view source_;
};

RandomResizedCrop random_resized(const Members& members) {
  members.check_keys({"kind", "scale", "ratio"});
  RandomResizedCrop crop;
  members.read("scale", crop.scale);
  members.read("ratio", crop.ratio);
  return crop;
}

CenterCrop center(const Members& members) {
  members.check_keys({"kind", "resize"});
  CenterCrop crop;
  members.read("resize", crop.resize);
  return crop;
}

}  // namespace

Recipe Recipe::train(int size) {
  Recipe recipe{{size, size}, RandomResizedCrop{}, 0.5};
  recipe.validate();
  return recipe;
}

Recipe Recipe::eval(int size) {
  const double resize = std::round(size * 256.0 / 224.0);
  Recipe recipe{
      {size, size}, CenterCrop{static_cast<int>(std::min<double>(resize, largest_side))}, 0};
  recipe.validate();
  return recipe;
}

Recipe Recipe::from_json(std::string_view json, std::string_view source) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::exception& error) {
    fail(source, std::string("is not valid JSON: ") + error.what());
  }
  const Members members(parsed, "", source);
  members.check_keys({"output", "crop", "flip", "flip_on"});
  Recipe recipe;
  members.read("output", recipe.output);
  members.read("flip", recipe.flip);
  if (const Json* on = members.find("flip_on")) {
    if (*on != "worker" && *on != "device")
      members.fail_value("flip_on", *on, "\"worker\" or \"device\"");
    recipe.flip_on = *on == "device" ? FlipOn::device : FlipOn::worker;
  }
  if (const Json* crop = members.find("crop")) {
    const Members crop_members(*crop, "crop", source);
    const Json* kind = crop_members.find("kind");
    if (kind == nullptr)
      fail(source, "\"crop.kind\" is missing; it is \"random_resized\" or \"center\"");
    if (*kind == "random_resized")
      recipe.crop = random_resized(crop_members);
    else if (*kind == "center")
      recipe.crop = center(crop_members);
    else
      crop_members.fail_value("kind", *kind, "\"random_resized\" or \"center\"");
  }
  check(recipe, source);
  return recipe;
}

std::string Recipe::to_json() const {
  Json json;
  json["output"] = {output.width, output.height};
  if (const auto* random = std::get_if<RandomResizedCrop>(&crop))
    json["crop"] = {{"kind", "random_resized"},
                    {"scale", {random->scale.low, random->scale.high}},
                    {"ratio", {random->ratio.low, random->ratio.high}}};
  if (const auto* centred = std::get_if<CenterCrop>(&crop))
    json["crop"] = {{"kind", "center"}, {"resize", centred->resize}};
  json["flip"] = flip;
  if (flip_on == FlipOn::device)
    json["flip_on"] = "device";  // else as before there was a choice: fingerprints are of this text
  return json.dump();
}

void Recipe::validate() const { check(*this, "recipe"); }

}  // namespace millrace
