// SPDX-License-Identifier: Apache-2.0
//
// The three visitors of parameters: one reads them from JSON, one writes JSON, one checks.
#pragma once

#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "number_list.h"
#include "ops/image_operation.h"
#include "ops/program.h"

namespace millrace {

using RecipeJson = nlohmann::ordered_json;

/// The largest width or height of an image that is read.
inline constexpr int longest_side = 65535;

/// Throws `Error` (`invalid_argument`). `source` names the object with the problem.
[[noreturn]] inline void refuse_parameter(std::string_view source, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, std::string(source) + ": " + problem);
}

/// Returns a number as JSON has it, with the fewest digits that read back the same. A number that
/// JSON does not have is written as `std::to_string` does, not as "null".
inline std::string number_text(double value) {
  return std::isfinite(value) ? RecipeJson(value).dump() : std::to_string(value);
}

inline std::string quoted_names(std::span<const char* const> names, const char* separator) {
  std::string text;
  for (const char* name : names)
    text += (text.empty() ? "\"" : std::string(separator) + '"') + name + '"';
  return text;
}

inline std::string member_place(const char* key, std::size_t number) {
  return std::string(key) + '[' + std::to_string(number) + ']';
}

/// Read, write and check an operation in a list. `place` names it in messages. `output` is set if
/// the operation gives the size of the output.
Operation read_operation(const RecipeJson& json, const std::string& place,
                         std::optional<Size>& output);
RecipeJson operation_json(const Operation& operation);
void check_operation(const Operation& operation, const std::string& place);

/// Reads the members of one JSON object by name. `check_keys` refuses those that were not read.
class ParameterReader final : public Parameters {
 public:
  ParameterReader(const RecipeJson& object, const char* what, std::string source)
      : object_(object), what_(what), source_(std::move(source)) {
    if (!object.is_object())
      refuse_parameter(source_, what + std::string(" must be an object in { }"));
  }

  /// Returns what the object describes: "the recipe".
  const char* what() const { return what_; }
  const RecipeJson* find(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void number(const char* key, double& value, Range) override {
    if (const RecipeJson* json = find(key)) value = number_in(*json, key, "a number");
  }
  void integer(const char* key, int& value, int low, int high) override {
    if (const RecipeJson* json = find(key)) value = integer_in(*json, key, "an integer", low, high);
  }
  void range(const char* key, Range& value, Range, OneNumber one) override {
    const char* const what =
        one == OneNumber::refused ? "two numbers, [low, high]" : "a number, or two, [low, high]";
    const RecipeJson* const json = find_some(key);
    if (json == nullptr) return;
    const std::vector<RecipeJson> parts = parts_of(*json);
    const bool is_one = json->is_number() || (one == OneNumber::both_ends && parts.size() == 1);
    if ((is_one && one == OneNumber::refused) || (!is_one && parts.size() != 2))
      fail(key, *json, what);
    const Range ends{number_in(parts.front(), key, what), number_in(parts.back(), key, what)};
    if (is_one && one == OneNumber::around_one && ends.low < 0)
      fail(key, *json, "0 or above, or two numbers, [low, high]");
    value = is_one ? range_of(ends.low, one) : ends;
  }
  void numbers(const char* key, std::vector<double>& value, const NumberList& list) override {
    const RecipeJson* json = list.required ? find(key) : find_some(key);
    if (json == nullptr) return;
    const std::vector<RecipeJson> parts = parts_of(*json);
    if (parts.empty() || std::ranges::find(list.counts, parts.size()) == list.counts.end())
      fail(key, *json, list.what);
    value.clear();
    for (const RecipeJson& part : parts) {
      if (list.whole && !part.is_number_integer()) fail(key, *json, list.what);
      value.push_back(number_in(part, key, list.what));
    }
    if (const std::string wrong = list_problem(value, list); !wrong.empty())
      fail(key, *json, wrong);
  }
  void size(const char* key, Size& value) {
    constexpr const char* what = "two integers, [width, height]";
    if (const RecipeJson* json = find_pair(key, what))
      value = {integer_in((*json)[0], key, what, 1, largest_side),
               integer_in((*json)[1], key, what, 1, largest_side)};
  }
  void region(const char* key, Region& value) override {
    constexpr const char* what = "four integers, [x, y, width, height]";
    const RecipeJson* json = find(key);
    if (json == nullptr) return;
    if (!json->is_array() || json->size() != 4) fail(key, *json, what);
    int* const members[] = {&value.x, &value.y, &value.width, &value.height};
    for (std::size_t n = 0; n < 4; ++n)
      *members[n] = integer_in((*json)[n], key, what, n < 2 ? 0 : 1, longest_side);
  }
  void name(const char* key, std::string& value) override {
    const RecipeJson* json = find(key);
    if (json == nullptr) return;
    if (!json->is_string()) fail(key, *json, "a text");
    value = json->get<std::string>();
  }
  void flag(const char* key, bool& value) override {
    const RecipeJson* json = find(key);
    if (json == nullptr) return;
    if (!json->is_boolean()) fail(key, *json, "true or false");
    value = json->get<bool>();
  }
  void colour(const char* key, Colour& value) override {
    constexpr const char* what = "an integer, or three, [red, green, blue]";
    const RecipeJson* json = find_some(key);
    if (json == nullptr) return;
    const std::vector<RecipeJson> parts = parts_of(*json);
    if (parts.size() != 1 && parts.size() != 3) fail(key, *json, what);
    int* const members[] = {&value.red, &value.green, &value.blue};
    for (std::size_t n = 0; n < 3; ++n)
      *members[n] = integer_in(whole(parts[n % parts.size()]), key, what, 0, 255);
  }
  void operations(const char* key, std::vector<Operation>& value) override {
    const RecipeJson* json = find(key);
    if (const RecipeJson* transforms = find("transforms")) {
      if (json != nullptr)
        refuse_parameter(
            source_,
            '"' + std::string(key) + "\" and \"transforms\" are the same parameter; leave one out");
      key = "transforms";
      json = transforms;
    }
    if (json == nullptr) return;
    if (!json->is_array()) fail(key, *json, "a list of operations in [ ]");
    value.clear();
    std::optional<Size> ignored;
    for (const RecipeJson& op : *json)
      value.push_back(
          read_operation(op, source_ + ": " + member_place(key, value.size()), ignored));
  }
  void choice(const char* key, std::size_t& value, std::span<const char* const> names) override {
    const RecipeJson* json = find(key);
    if (json == nullptr) return;
    const RecipeJson written =
        std::string_view(key) == "interpolation" ? interpolation_name(*json) : *json;
    const auto name = std::ranges::find_if(names, [&](const char* one) { return written == one; });
    if (name == names.end()) fail(key, *json, quoted_names(names, " or "));
    value = static_cast<std::size_t>(name - names.begin());
  }
  void only(const char* key, std::span<const char* const> values) override {
    const RecipeJson* json = find(key);
    if (json == nullptr) return;
    const std::string written = json->dump(-1, ' ', false, RecipeJson::error_handler_t::replace);
    if (std::ranges::find(values, written) != values.end()) return;
    std::string allowed;
    for (const char* value : values)
      allowed += (allowed.empty() ? "" : " or ") + std::string(value);
    fail(key, *json, allowed);
  }
  void output(const char* key) override {
    const RecipeJson* json = find(key);
    if (json == nullptr) return;
    constexpr const char* what = "an integer";
    const std::vector<RecipeJson> parts = parts_of(*json);
    if (parts.empty() || parts.size() > 2) fail(key, *json, what);
    output_ = {integer_in(parts.front(), key, what, 1, largest_side),
               integer_in(parts.back(), key, what, 1, largest_side)};
    if (output_->width != output_->height)
      fail(key, *json,
           "one number; give a size that is not square as the recipe's \"output\", "
           "[width, height]");
  }
  /// Returns the size of the output if a member gave it.
  const std::optional<Size>& given_output() const { return output_; }

  [[noreturn]] void fail(const char* key, const RecipeJson& value,
                         const std::string& wanted) const {
    refuse_parameter(source_,
                     '"' + std::string(key) + "\" is " +
                         cut(value.dump(-1, ' ', false, RecipeJson::error_handler_t::replace)) +
                         ", must be " + wanted);
  }
  /// Refuses unknown members. Call it after the last member.
  void check_keys() const {
    for (const auto& [key, value] : object_.items())
      if (std::ranges::find(known_, key) == known_.end())
        refuse_parameter(source_, "unknown key \"" + cut(key) + "\"; the known keys are " +
                                      quoted_names(known_, ", "));
  }

 private:
  /// Does what `find` does, for parameters whose default is torchvision's None.
  const RecipeJson* find_some(const char* key) {
    const RecipeJson* json = find(key);
    return json != nullptr && json->is_null() ? nullptr : json;
  }
  static std::vector<RecipeJson> parts_of(const RecipeJson& json) {
    if (json.is_array()) return {json.begin(), json.end()};
    return std::vector<RecipeJson>(1, json);
  }
  static Range range_of(double number, OneNumber one) {
    if (one == OneNumber::both_ends) return {number, number};
    if (one == OneNumber::around_one) return {std::max(0.0, 1 - number), 1 + number};
    return {-std::abs(number), std::abs(number)};
  }
  /// Returns a number without a fraction, such as 127.0, as an integer, and any other number
  /// unchanged.
  static RecipeJson whole(const RecipeJson& json) {
    if (!json.is_number_float()) return json;
    const double number = json.get<double>();
    return std::trunc(number) == number && std::abs(number) < 1e9
               ? RecipeJson(static_cast<std::int64_t>(number))
               : json;
  }
  /// Translates torchvision's other names of filters: Pillow's numbers, and one name that Pillow
  /// does not have.
  static RecipeJson interpolation_name(const RecipeJson& json) {
    constexpr const char* numbered[] = {"nearest", "lanczos", "bilinear",
                                        "bicubic", "box",     "hamming"};
    if (json == "nearest-exact") return "nearest";
    for (std::size_t number = 0; number < std::size(numbered); ++number)
      if (json.is_number_integer() && json == number) return numbered[number];
    return json;
  }
  const RecipeJson* find_pair(const char* key, const char* what) {
    const RecipeJson* json = find(key);
    if (json != nullptr && (!json->is_array() || json->size() != 2)) fail(key, *json, what);
    return json;
  }
  double number_in(const RecipeJson& json, const char* key, const char* what) const {
    if (!json.is_number()) fail(key, json, what);
    return json.get<double>();
  }
  int integer_in(const RecipeJson& json, const char* key, const char* what, int low,
                 int high) const {
    if (!json.is_number_integer()) fail(key, json, what);
    const double wide = json.get<double>();
    if (wide < low || wide > high)
      fail(key, json, "in " + std::to_string(low) + ".." + std::to_string(high));
    return json.get<int>();
  }

  const RecipeJson& object_;
  const char* const what_;
  std::string source_;
  std::vector<const char*> known_;
  std::optional<Size> output_;
};

/// Writes parameters as members of a JSON object.
class ParameterWriter final : public Parameters {
 public:
  explicit ParameterWriter(RecipeJson& json) : json_(json) {}
  void number(const char* key, double& value, Range) override { json_[key] = value; }
  void integer(const char* key, int& value, int, int) override { json_[key] = value; }
  void range(const char* key, Range& value, Range, OneNumber) override {
    json_[key] = {value.low, value.high};
  }
  void numbers(const char* key, std::vector<double>& value, const NumberList& list) override {
    if (!value.empty()) json_[key] = json_of(value, list);
  }
  void region(const char* key, Region& value) override {
    json_[key] = {value.x, value.y, value.width, value.height};
  }
  void name(const char* key, std::string& value) override {
    if (!value.empty()) json_[key] = value;
  }
  void flag(const char* key, bool& value) override { json_[key] = value; }
  void colour(const char* key, Colour& value) override {
    json_[key] = {value.red, value.green, value.blue};
  }
  void operations(const char* key, std::vector<Operation>& value) override {
    json_[key] = RecipeJson::array();
    for (const Operation& operation : value) json_[key].push_back(operation_json(operation));
  }
  void choice(const char* key, std::size_t& value, std::span<const char* const> names) override {
    if (value != 0) json_[key] = value < names.size() ? names[value] : "";
  }

 private:
  RecipeJson& json_;
};

/// Checks parameters. Throws `Error` (`invalid_argument`) for the first one out of its limits.
class ParameterChecker final : public Parameters {
 public:
  explicit ParameterChecker(std::string_view source) : source_(source) {}

  void number(const char* key, double& value, Range limits) override {
    if (!(value >= limits.low && value <= limits.high))
      refuse_parameter(source_, '"' + std::string(key) + "\" is " + number_text(value) +
                                    ", must lie in " + number_text(limits.low) + ".." +
                                    number_text(limits.high));
  }
  void integer(const char* key, int& value, int low, int high) override {
    if (value < low || value > high)
      refuse_parameter(source_, '"' + std::string(key) + "\" is " + std::to_string(value) +
                                    ", must lie in " + std::to_string(low) + ".." +
                                    std::to_string(high));
  }
  void range(const char* key, Range& value, Range limits, OneNumber) override {
    const std::string is = '"' + std::string(key) + "\" is [" + number_text(value.low) + ", " +
                           number_text(value.high) + "], ";
    const auto lies_within = [&](double end) { return end >= limits.low && end <= limits.high; };
    if (!lies_within(value.low) || !lies_within(value.high))
      refuse_parameter(source_, is + "both must lie in " + number_text(limits.low) + ".." +
                                    number_text(limits.high));
    if (value.low > value.high)
      refuse_parameter(source_, is + "the first must not be above the second");
    if (limits.low >= 0 && value.high <= 0)
      refuse_parameter(source_, is + "the second must be above 0");
  }
  void numbers(const char* key, std::vector<double>& value, const NumberList& list) override {
    if (const std::string wrong = list_problem(value, list); !wrong.empty())
      refuse_parameter(source_, '"' + std::string(key) + "\" is " + json_of(value, list).dump() +
                                    ", must be " + wrong);
  }
  void region(const char* key, Region& value) override {
    const auto lies_within = [](int number, int low) {
      return number >= low && number <= longest_side;
    };
    if (!lies_within(value.x, 0) || !lies_within(value.y, 0) || !lies_within(value.width, 1) ||
        !lies_within(value.height, 1))
      refuse_parameter(source_,
                       '"' + std::string(key) + "\" is " +
                           RecipeJson{value.x, value.y, value.width, value.height}.dump() +
                           ", must be x and y from 0, width and height from 1, all up to " +
                           std::to_string(longest_side));
  }
  void name(const char*, std::string&) override {}
  void flag(const char*, bool&) override {}
  void colour(const char* key, Colour& value) override {
    for (int part : {value.red, value.green, value.blue}) integer(key, part, 0, 255);
  }
  void operations(const char* key, std::vector<Operation>& value) override {
    if (value.empty())
      refuse_parameter(source_,
                       '"' + std::string(key) + "\" is empty, must name at least one operation");
    for (std::size_t number = 0; number < value.size(); ++number) {
      const std::string place = source_ + ": " + member_place(key, number) + " (" +
                                value[number].implementation().name() + ")";
      if (const char* problem = nesting_problem(value[number]); problem != nullptr)
        refuse_parameter(place, problem);
      check_operation(value[number], place);
    }
  }
  void choice(const char* key, std::size_t& value, std::span<const char* const> names) override {
    if (value >= names.size())
      refuse_parameter(source_,
                       '"' + std::string(key) + "\" is not " + quoted_names(names, " or "));
  }

 private:
  std::string source_;
};

}  // namespace millrace
