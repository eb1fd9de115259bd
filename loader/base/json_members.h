// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

using Json = nlohmann::ordered_json;

/// Location of a value for error messages: the name of a text (a file, for example) and of an
/// object in it.
class JsonLocation {
 public:
  JsonLocation(std::string text, std::string object)
      : text_(std::move(text)), object_(std::move(object)) {}

  /// These throw `Error` (`invalid_argument`).
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail(std::string_view key, const Json& value, const std::string& must_be) const;
  std::string name(std::string_view key) const;

 private:
  std::string text_;
  std::string object_;
};

/// Reads members of one JSON object by key. If a key is missing, `into` is unchanged. Throws
/// `Error` (`invalid_argument`) for unknown members and for invalid values. The JSON object must
/// outlive this object.
class Members {
 public:
  Members(const Json& object, JsonLocation location, std::initializer_list<std::string_view> known);

  /// Null if the key is missing.
  const Json* find(const char* key) const;
  void read(const char* key, std::string& into) const;
  /// Null if the key is missing.
  const Json* object(const char* key) const;
  template <typename Integer>
  void read(const char* key, std::uint64_t low, std::uint64_t high, Integer& into) const {
    if (const Json* value = integer(key, low, high))
      into = static_cast<Integer>(value->get<std::uint64_t>());
  }
  void read_milliseconds(const char* key, double& into) const;

 private:
  const Json* integer(const char* key, std::uint64_t low, std::uint64_t high) const;

  const Json& object_;
  JsonLocation location_;
};

/// Returns the count under `key` in one of millrace's own files. Throws `Error` (`corrupt`) for a
/// value of another type: the parser would convert any number.
template <typename AnyJson>
std::uint64_t count_of(const AnyJson& value, const char* key) {
  if (!value.is_number_unsigned())
    throw Error(ErrorCode::corrupt, "its \"" + std::string(key) + "\" is " + cut(value.dump()) +
                                        ", must be an integer of 0 or more");
  return value.template get<std::uint64_t>();
}

/// Converts a name to JSON: a text, or an array of its bytes if it is not UTF-8.
nlohmann::json name_to_json(const std::string& name);
std::string name_from_json(const nlohmann::json& json);
nlohmann::json names_to_json(const std::vector<std::string>& names);
std::vector<std::string> names_from_json(const nlohmann::json& json);

/// Returns "an integer in 1..9", for `JsonLocation::fail`.
std::string range_text(std::uint64_t low, std::uint64_t high);

/// Throws unless `json` has a "format" from 1 to `newest`. Call it before other keys are read,
/// because a newer format may have other keys. `what` is the expected kind of text, such as "an
/// options file".
void check_format(const Json& json, const JsonLocation& location, std::uint64_t newest,
                  const std::string& what);

}  // namespace millrace
