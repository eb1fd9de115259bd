// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::cli {

/// A value as JSON; null for nullopt.
template <typename Value>
nlohmann::ordered_json json_of(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// A result as a text for programs: valid JSON whatever bytes names have, without control
/// characters in it.
std::string json_text(const nlohmann::ordered_json& json);

/// What a result says: each figure once, with its key for programs, and its name and its text for
/// people. What prints a result in whatever form takes the figures from here.
class Figures {
 public:
  using Json = nlohmann::ordered_json;

  /// A number in a format such as "{:.1f} ms".
  template <typename Number>
  void add(const char* key, const char* label, const char* format, Number value) {
    figures_.push_back({key, label, value, fmt::format(fmt::runtime(format), value)});
  }
  /// A figure that has no row of its own.
  void key(std::string key, Json value) {
    figures_.push_back({std::move(key), {}, std::move(value), {}});
  }
  /// A row whose figures have keys of their own.
  void row(std::string label, std::string text) {
    figures_.push_back({{}, std::move(label), {}, std::move(text)});
  }

  /// All that has a key, as an object.
  Json json() const;
  /// The text of a figure that has a key and a row.
  const std::string& text(std::string_view key) const;
  /// All rows: name and text.
  std::vector<std::vector<std::string>> rows() const;

 private:
  struct Figure {
    std::string key;
    std::string label;
    Json value;
    std::string text;
  };
  std::vector<Figure> figures_;
};

}  // namespace millrace::cli
