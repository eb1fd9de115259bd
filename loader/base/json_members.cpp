// SPDX-License-Identifier: Apache-2.0
#include "base/json_members.h"

#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <utf8.h>

#include <algorithm>

namespace millrace {

void JsonLocation::fail(const std::string& problem) const {
  throw Error(ErrorCode::invalid_argument, text_ + ": " + problem);
}

void JsonLocation::fail(std::string_view key, const Json& value, const std::string& must_be) const {
  fail(name(key) + " is " + cut(value.dump(-1, ' ', false, Json::error_handler_t::replace)) +
       ", must be " + must_be);
}

std::string JsonLocation::name(std::string_view key) const {
  return '"' + (object_.empty() ? std::string(key) : object_ + '.' + std::string(key)) + '"';
}

Members::Members(const Json& object, JsonLocation location,
                 std::initializer_list<std::string_view> known)
    : object_(object), location_(std::move(location)) {
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + ('"' + std::string(name) + '"');
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      location_.fail("unknown key " + location_.name(cut(key)) + "; the known keys are " + names);
}

const Json* Members::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

void Members::read(const char* key, std::string& into) const {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) location_.fail(key, *value, "a string");
  into = value->get<std::string>();
}

const Json* Members::object(const char* key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_object()) location_.fail(key, *value, "an object in { }");
  return value;
}

const Json* Members::integer(const char* key, std::uint64_t low, std::uint64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() < low ||
      value->get<std::uint64_t>() > high)
    location_.fail(key, *value, range_text(low, high));
  return value;
}

void Members::read_milliseconds(const char* key, double& into) const {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number() || value->get<double>() < 0)
    location_.fail(key, *value, "a number of milliseconds, 0 or more");
  into = value->get<double>();
}

nlohmann::json name_to_json(const std::string& name) {
  if (utf8::is_valid(name.begin(), name.end())) return name;
  return std::vector<std::uint8_t>(name.begin(), name.end());
}

std::string name_from_json(const nlohmann::json& json) {
  if (!json.is_array()) return json.get<std::string>();
  const auto bytes = json.get<std::vector<std::uint8_t>>();
  return {bytes.begin(), bytes.end()};
}

nlohmann::json names_to_json(const std::vector<std::string>& names) {
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& name : names) json.push_back(name_to_json(name));
  return json;
}

std::vector<std::string> names_from_json(const nlohmann::json& json) {
  // Throws for a value of another type.
  const auto list = json.get<std::vector<nlohmann::json>>();
  std::vector<std::string> names;
  names.reserve(list.size());
  for (const nlohmann::json& name : list) names.push_back(name_from_json(name));
  return names;
}

std::string range_text(std::uint64_t low, std::uint64_t high) {
  return "an integer in " + std::to_string(low) + ".." + std::to_string(high);
}

void check_format(const Json& json, const JsonLocation& location, std::uint64_t newest,
                  const std::string& what) {
  const auto format = json.find("format");
  if (format == json.end())
    location.fail("\"format\" is missing; this is not " + what + " of millrace");
  if (!format->is_number_unsigned() || format->get<std::uint64_t>() == 0)
    location.fail("format", *format, range_text(1, newest));
  if (format->get<std::uint64_t>() > newest)
    location.fail(
        "\"format\" is " + format->dump() + ", newer than " + std::to_string(newest) +
        ", the newest that this version of millrace reads; use the version that wrote it, or write "
        "it again");
}

}  // namespace millrace
