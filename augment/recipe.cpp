// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "mix_parameters.h"
#include "number_list.h"
#include "ops/operations.h"
#include "ops/program.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

/// The largest width or height of an image that is read.
constexpr int longest_side = 65535;

[[noreturn]] void fail(std::string_view source, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, std::string(source) + ": " + problem);
}

/// Writes a number as JSON does, with the fewest digits that read back the same; not "null" for
/// what JSON cannot say.
std::string text(double value) {
  return std::isfinite(value) ? Json(value).dump() : std::to_string(value);
}

std::string listed(std::span<const char* const> names, const char* separator) {
  std::string text;
  for (const char* name : names)
    text += (text.empty() ? "\"" : std::string(separator) + '"') + name + '"';
  return text;
}

Operation read_operation(const Json& json, const std::string& place);
Json to_json(const Operation& operation);
void check_operation(const Operation& operation, const std::string& place);

std::string place_in(const char* key, std::size_t number) {
  return std::string(key) + '[' + std::to_string(number) + ']';
}

/// One JSON object whose members are taken by name; what is left over at the end is unknown.
class Reader final : public Parameters {
 public:
  Reader(const Json& object, const char* what, std::string source)
      : object_(object), source_(std::move(source)) {
    if (!object.is_object())
      millrace::fail(source_, what + std::string(" must be an object in { }"));
  }

  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void number(const char* key, double& value, Range) override {
    if (const Json* json = find(key)) value = number_in(*json, key, "a number");
  }
  void integer(const char* key, int& value, int low, int high) override {
    if (const Json* json = find(key)) value = integer_in(*json, key, "an integer", low, high);
  }
  void range(const char* key, Range& value, Range limits) override {
    constexpr const char* what = "two numbers, [low, high]";
    const auto found = object_.find(key);
    if (limits.low < 0 && found != object_.end() && found->is_number()) {
      const double reach = std::abs(number_in(*find(key), key, what));
      value = {-reach, reach};
    } else if (const Json* json = find_pair(key, what))
      value = {number_in((*json)[0], key, what), number_in((*json)[1], key, what)};
  }
  void numbers(const char* key, std::vector<double>& value, const NumberList& list) override {
    const Json* json = find(key);
    if (json == nullptr) return;
    const std::vector<Json> parts =
        json->is_array() ? std::vector<Json>(json->begin(), json->end()) : std::vector<Json>{*json};
    if (parts.empty() || std::ranges::find(list.counts, parts.size()) == list.counts.end())
      fail(key, *json, list.what);
    value.clear();
    for (const Json& part : parts) {
      if (list.whole && !part.is_number_integer()) fail(key, *json, list.what);
      value.push_back(number_in(part, key, list.what));
    }
    if (const std::string wrong = list_problem(value, list); !wrong.empty())
      fail(key, *json, wrong);
  }
  void size(const char* key, Size& value) {
    constexpr const char* what = "two integers, [width, height]";
    if (const Json* json = find_pair(key, what))
      value = {integer_in((*json)[0], key, what, 1, largest_side),
               integer_in((*json)[1], key, what, 1, largest_side)};
  }
  void region(const char* key, Region& value) override {
    constexpr const char* what = "four integers, [x, y, width, height]";
    const Json* json = find(key);
    if (json == nullptr) return;
    if (!json->is_array() || json->size() != 4) fail(key, *json, what);
    int* const members[] = {&value.x, &value.y, &value.width, &value.height};
    for (std::size_t n = 0; n < 4; ++n)
      *members[n] = integer_in((*json)[n], key, what, n < 2 ? 0 : 1, longest_side);
  }
  void flag(const char* key, bool& value) override {
    const Json* json = find(key);
    if (json == nullptr) return;
    if (!json->is_boolean()) fail(key, *json, "true or false");
    value = json->get<bool>();
  }
  void colour(const char* key, Colour& value) override {
    constexpr const char* what = "three integers, [red, green, blue]";
    const Json* json = find(key);
    if (json == nullptr) return;
    if (!json->is_array() || json->size() != 3) fail(key, *json, what);
    int* const members[] = {&value.red, &value.green, &value.blue};
    for (std::size_t n = 0; n < 3; ++n) *members[n] = integer_in((*json)[n], key, what, 0, 255);
  }
  void operations(const char* key, std::vector<Operation>& value) override {
    const Json* json = find(key);
    if (json == nullptr) return;
    if (!json->is_array()) fail(key, *json, "a list of operations in [ ]");
    value.clear();
    for (const Json& op : *json)
      value.push_back(read_operation(op, source_ + ": " + place_in(key, value.size())));
  }
  void choice(const char* key, std::size_t& value, std::span<const char* const> names) override {
    const Json* json = find(key);
    if (json == nullptr) return;
    const auto name = std::ranges::find_if(names, [&](const char* one) { return *json == one; });
    if (name == names.end()) fail(key, *json, listed(names, " or "));
    value = static_cast<std::size_t>(name - names.begin());
  }

  [[noreturn]] void fail(const char* key, const Json& value, const std::string& wanted) const {
    millrace::fail(source_, '"' + std::string(key) + "\" is " +
                                cut(value.dump(-1, ' ', false, Json::error_handler_t::replace)) +
                                ", must be " + wanted);
  }
  /// Call it when all members were taken.
  void check_keys() const {
    for (const auto& [key, value] : object_.items())
      if (std::ranges::find(known_, key) == known_.end())
        millrace::fail(source_,
                       "unknown key \"" + cut(key) + "\"; there are " + listed(known_, ", "));
  }

 private:
  const Json* find_pair(const char* key, const char* what) {
    const Json* json = find(key);
    if (json != nullptr && (!json->is_array() || json->size() != 2)) fail(key, *json, what);
    return json;
  }
  double number_in(const Json& json, const char* key, const char* what) const {
    if (!json.is_number()) fail(key, json, what);
    return json.get<double>();
  }
  int integer_in(const Json& json, const char* key, const char* what, int low, int high) const {
    if (!json.is_number_integer()) fail(key, json, what);
    const double wide = json.get<double>();
    if (wide < low || wide > high)
      fail(key, json, "in " + std::to_string(low) + ".." + std::to_string(high));
    return json.get<int>();
  }

  const Json& object_;
  std::string source_;
  std::vector<const char*> known_;
};

class Writer final : public Parameters {
 public:
  explicit Writer(Json& json) : json_(json) {}
  void number(const char* key, double& value, Range) override { json_[key] = value; }
  void integer(const char* key, int& value, int, int) override { json_[key] = value; }
  void range(const char* key, Range& value, Range) override {
    json_[key] = {value.low, value.high};
  }
  void numbers(const char* key, std::vector<double>& value, const NumberList& list) override {
    json_[key] = json_of(value, list);
  }
  void region(const char* key, Region& value) override {
    json_[key] = {value.x, value.y, value.width, value.height};
  }
  void flag(const char* key, bool& value) override { json_[key] = value; }
  void colour(const char* key, Colour& value) override {
    json_[key] = {value.red, value.green, value.blue};
  }
  void operations(const char* key, std::vector<Operation>& value) override {
    json_[key] = Json::array();
    for (const Operation& operation : value) json_[key].push_back(millrace::to_json(operation));
  }
  void choice(const char* key, std::size_t& value, std::span<const char* const> names) override {
    if (value != 0) json_[key] = value < names.size() ? names[value] : "";
  }

 private:
  Json& json_;
};

class Checker final : public Parameters {
 public:
  explicit Checker(std::string_view source) : source_(source) {}

  void number(const char* key, double& value, Range limits) override {
    if (!(value >= limits.low && value <= limits.high))
      fail(source_, '"' + std::string(key) + "\" is " + text(value) + ", must lie in " +
                        text(limits.low) + ".." + text(limits.high));
  }
  void integer(const char* key, int& value, int low, int high) override {
    if (value < low || value > high)
      fail(source_, '"' + std::string(key) + "\" is " + std::to_string(value) + ", must lie in " +
                        std::to_string(low) + ".." + std::to_string(high));
  }
  void odd_integer(const char* key, int& value, int low, int high) override {
    integer(key, value, low, high);
    if (value % 2 == 0)
      fail(source_, '"' + std::string(key) + "\" is " + std::to_string(value) + ", must be odd");
  }
  void range(const char* key, Range& value, Range limits) override {
    const std::string is =
        '"' + std::string(key) + "\" is [" + text(value.low) + ", " + text(value.high) + "], ";
    const auto lies_within = [&](double end) { return end >= limits.low && end <= limits.high; };
    if (!lies_within(value.low) || !lies_within(value.high))
      fail(source_, is + "both must lie in " + text(limits.low) + ".." + text(limits.high));
    if (value.low > value.high) fail(source_, is + "the first must not be above the second");
    if (limits.low >= 0 && value.high <= 0) fail(source_, is + "the second must be above 0");
  }
  void numbers(const char* key, std::vector<double>& value, const NumberList& list) override {
    if (const std::string wrong = list_problem(value, list); !wrong.empty())
      fail(source_,
           '"' + std::string(key) + "\" is " + json_of(value, list).dump() + ", must be " + wrong);
  }
  void region(const char* key, Region& value) override {
    const auto lies_within = [](int number, int low) {
      return number >= low && number <= longest_side;
    };
    if (!lies_within(value.x, 0) || !lies_within(value.y, 0) || !lies_within(value.width, 1) ||
        !lies_within(value.height, 1))
      fail(source_, '"' + std::string(key) + "\" is " +
                        Json{value.x, value.y, value.width, value.height}.dump() +
                        ", must be x and y from 0, width and height from 1, all up to " +
                        std::to_string(longest_side));
  }
  void flag(const char*, bool&) override {}
  void colour(const char* key, Colour& value) override {
    for (int part : {value.red, value.green, value.blue}) integer(key, part, 0, 255);
  }
  void operations(const char* key, std::vector<Operation>& value) override {
    if (value.empty())
      fail(source_, '"' + std::string(key) + "\" is empty, must name at least one operation");
    for (std::size_t number = 0; number < value.size(); ++number) {
      const std::string place =
          source_ + ": " + place_in(key, number) + " (" + value[number].held().name() + ")";
      if (const char* problem = nesting_problem(value[number]); problem != nullptr)
        fail(place, problem);
      check_operation(value[number], place);
    }
  }
  void choice(const char* key, std::size_t& value, std::span<const char* const> names) override {
    if (value >= names.size())
      fail(source_, '"' + std::string(key) + "\" is no " + listed(names, " or "));
  }

 private:
  std::string source_;
};

void check_operation(const Operation& operation, const std::string& place) {
  Checker checker(place);
  operation.held().describe(checker);
}

constexpr const char* versions[] = {"pillow-13", "pillow-12"};  // of `Like`
constexpr const char* resolutions[] = {"exact", "reduced"};     // of `Resolution`

}  // namespace

void check_mix(const Mix& mix, std::string_view source) {
  Checker checker(source);
  Mix checked = mix;
  describe(checker, checked);
  if (mix.mixup <= 0 && mix.cutmix <= 0)
    fail(source, "\"mixup\" and \"cutmix\" are both 0, and nothing is mixed");
}

namespace {

void check(const Recipe& recipe, std::string_view source) {
  Checker output(source);
  Like like = recipe.like;
  output.named("like", like, versions);
  Resolution resolution = recipe.resolution;
  output.named("resolution", resolution, resolutions);
  int sides[] = {recipe.output.width, recipe.output.height};
  for (int& side : sides) output.integer("output", side, 1, largest_side);
  for (std::size_t number = 0; number < recipe.ops.size(); ++number)
    check_operation(recipe.ops[number], std::string(source) + ": " + place_of(recipe.ops, number));
  if (const std::string problem = order_problem(recipe.ops); !problem.empty())
    fail(source, problem);
  if (!recipe.mix) return;
  check_mix(*recipe.mix, std::string(source) + ": mix");
  if (const int views = views_of(recipe.ops); views > 1)
    fail(source,
         "\"mix\" mixes one image of a sample, and the operations make " + std::to_string(views));
  for (std::size_t number = 0; number < recipe.ops.size(); ++number)
    if (recipe.mix->on == MixOn::worker && runs_on_device(recipe.ops[number]))
      fail(source, place_of(recipe.ops, number) + " runs on the device, and \"mix\" before it on " +
                       "a worker; let both run on one of them");
}

std::shared_ptr<ImageOperation> make_operation(const Json* name, Reader& reader) {
  std::vector<const char*> names;
  for (const auto make : operations) {
    std::shared_ptr<ImageOperation> operation = make();
    if (name != nullptr && *name == operation->name()) return operation;
    names.push_back(operation->name());
  }
  reader.fail("op", name == nullptr ? Json() : *name, "one of " + listed(names, ", "));
}

Operation read_operation(const Json& json, const std::string& place) {
  Reader unnamed(json, "the operation", place);
  const auto operation = make_operation(unnamed.find("op"), unnamed);
  Reader reader(json, "the operation", place + " (" + operation->name() + ")");
  reader.find("op");
  operation->describe(reader);
  reader.check_keys();
  return Operation(operation);
}

Json to_json(const Operation& operation) {
  Json json{{"op", operation.held().name()}};
  Writer writer(json);
  operation.held().describe(writer);
  return json;
}

}  // namespace

std::string Operation::to_json() const { return millrace::to_json(*this).dump(); }

Recipe Recipe::from_json(std::string_view json, std::string_view source) {
  if (const std::string problem = json_problem(json); !problem.empty()) fail(source, problem);
  const Json parsed = Json::parse(json);
  Reader reader(parsed, "the recipe", std::string(source));
  for (const char* key : {"crop", "flip", "flip_on"})
    if (parsed.contains(key))
      fail(source, '"' + std::string(key) + "\" is no longer a key; a recipe is a list of " +
                       "operations now, as " + Recipe().to_json());
  Recipe recipe;
  reader.size("output", recipe.output);
  reader.named("like", recipe.like, versions);
  reader.named("resolution", recipe.resolution, resolutions);
  if (const Json* ops = reader.find("ops")) {
    if (!ops->is_array()) fail(source, "\"ops\" must be a list of operations in [ ]");
    recipe.ops.clear();
    for (const Json& op : *ops)
      recipe.ops.push_back(
          read_operation(op, std::string(source) + ": " + place_in("ops", recipe.ops.size())));
  }
  if (const Json* mix = reader.find("mix")) {
    Reader mix_reader(*mix, "mix", std::string(source) + ": mix");
    describe(mix_reader, recipe.mix.emplace());
    mix_reader.check_keys();
  }
  reader.check_keys();
  check(recipe, source);
  return recipe;
}

std::string Recipe::to_json() const {
  Json json;
  json["output"] = {output.width, output.height};
  json["like"] = versions[static_cast<std::size_t>(like)];
  if (resolution != Resolution::exact)
    json["resolution"] = resolutions[static_cast<std::size_t>(resolution)];
  json["ops"] = Json::array();
  for (const Operation& operation : ops) json["ops"].push_back(millrace::to_json(operation));
  if (mix) {
    Writer writer(json["mix"]);
    Mix written = *mix;
    describe(writer, written);
  }
  return json.dump();
}

void Recipe::validate() const { check(*this, "recipe"); }

}  // namespace millrace
